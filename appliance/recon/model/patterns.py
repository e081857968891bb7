"""Lists of module names as quantisation configurations write them: literal names, globs, regular expressions.

Meanings follow the readers: compressed-tensors (`re:` and literals), modelopt (globs over the whole name or one part
of it; SGLang 0.5.23 srt/layers/quantization/modelopt_quant.py is_layer_excluded), transformers' fp8 (a literal also
covers what lies below it; a name without a dot is any module so called).
"""

import fnmatch
import re

NESTED = re.compile(r"\([^()]*[*+}][^()]*\)[*+{]")
UNBOUNDED = re.compile(r"(?<!\\)[*+]")
MOST_UNBOUNDED = 6
ONE_EXPERT = re.compile(r"experts\\?\.\d")


class NamePatterns:
    """Matches module names against a list. Patterns that cannot be read match nothing and are kept in `unreadable`."""

    def __init__(self, patterns: object):
        texts = [text for text in patterns if isinstance(text, str)] if isinstance(patterns, list) else []
        expressions = []
        self.unreadable: list[str] = []
        self._literals = {text for text in texts if not text.startswith("re:") and "*" not in text}
        for text in texts:
            if text.startswith("re:") and explodes(text):
                self.unreadable.append(text.removeprefix("re:"))
            elif text.startswith("re:"):
                expressions.append(text.removeprefix("re:"))
            elif "*" in text:
                expressions.append(fnmatch.translate(text).removesuffix(r"\Z").removesuffix(r"\z") + r"(\..*)?$")
        self._expressions = []
        for expression in expressions:
            try:
                self._expressions.append(re.compile(expression))
            except (re.error, OverflowError, RecursionError):
                self.unreadable.append(expression)
        self._parts = [fnmatch.translate(text) for text in texts if "*" in text and not text.startswith("re:")]
        self._part = re.compile("|".join(self._parts)) if self._parts else None
        self.names_single_experts = any(ONE_EXPERT.search(text) for text in texts)
        self._texts = texts

    def __bool__(self) -> bool:
        return bool(self._texts)

    def match(self, module: str) -> bool:
        """Whether the list holds `module`, or something that it lies within."""
        names = [module]
        if module.startswith("language_model."):
            names.append(module.removeprefix("language_model."))
        return any(self._match(name) for name in names)

    def _match(self, module: str) -> bool:
        parts = module.split(".")
        if any(part in self._literals for part in parts):
            return True
        if any(".".join(parts[:count]) in self._literals for count in range(2, len(parts) + 1)):
            return True
        if self._part is not None and any(self._part.fullmatch(part) for part in parts):
            return True
        return any(expression.match(module) for expression in self._expressions)


def explodes(expression: str) -> bool:
    """Whether a regular expression may take more than polynomial time, or a high power, to find that it does not match.

    A file from elsewhere must not be able to stop a reconnaissance; no writer of configurations needs such patterns.
    """
    return NESTED.search(expression) is not None or len(UNBOUNDED.findall(expression)) > MOST_UNBOUNDED
