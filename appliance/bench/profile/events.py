"""The events of a trace in Chrome's JSON format, one at a time: a trace of any length is read in little memory.

json's own decoder reads each event; only the frame around them is followed here.
"""

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from appliance.errors import InputError

CHUNK = 1 << 20
LONGEST = 16 << 20
"""Characters of one value: longer ones are no part of a profiler's trace."""
GZIP = b"\x1f\x8b"
EVENTS = "traceEvents"
NUMBER = "-0123456789"
NUMBERS = re.compile(r"[-+0-9.eE]*")
WORDS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
ESCAPE = len("\\uD83D\\uDE00")
EXPECTED = "expected a trace as torch.profiler writes it (.json or .json.gz)"


def read(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield ("traceEvents", event) for each event and (name, value) for what else the trace holds, in its order.

    Raises InputError where the file cannot be read, is cut short or is no trace.
    """
    try:
        with path.open("rb") as raw:
            start = raw.read(2)
        opened = gzip.open(path, "rt", encoding="utf-8") if start == GZIP else path.open(encoding="utf-8")
        with opened as file:
            yield from members(Scanner(file))
    except (EOFError, CutShort):
        raise InputError(f"{path}: the trace is cut short; was its profiler still writing?") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path}: damaged ({error}); {EXPECTED}") from None
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; {EXPECTED}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); {EXPECTED}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text; {EXPECTED}") from None
    except NotATrace as error:
        raise InputError(f"{path}: {error}; {EXPECTED}") from None


class NotATrace(Exception):
    """The text is not what a profiler writes."""


class CutShort(Exception):
    """The text ends within a value."""


class Scanner:
    """JSON values of a text that is longer than memory, one after the other."""

    def __init__(self, file: TextIO):
        self._file = file
        self._text, self._at, self._ended = "", 0, False
        self._decoder = json.JSONDecoder(strict=False)  # kernel names have been seen with raw control characters

    def peek(self) -> str:
        """The next character that is no white space; "" at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in " \t\r\n":
                    return self._text[self._at]
                self._at += 1
            if self._ended:
                return ""
            self._fill(CHUNK)

    def take(self, *wanted: str) -> str:
        """The next character, which must be one of `wanted`. Raises NotATrace, CutShort."""
        found = self.peek()
        if found == "":
            raise CutShort
        if found not in wanted:
            raise NotATrace(f"found {found!r} where {' or '.join(wanted)} belongs")
        self._at += 1
        return found

    def value(self) -> Any:
        """The next value. Raises NotATrace, CutShort."""
        first = self.peek()
        if first == "":
            raise CutShort
        while True:
            try:
                found, end = self._decoder.raw_decode(self._text, self._at)
            except RecursionError:
                raise NotATrace("not JSON") from None
            except ValueError as error:
                cut = is_cut(error, self._text)
            else:
                # a number may go on in what has not been read yet
                cut = first in NUMBER and NUMBERS.match(self._text, self._at).end() == len(self._text)
                if not cut:
                    self._at = end
                    return found
            if not cut:
                raise NotATrace("not JSON")
            if self._ended:
                raise CutShort
            held = len(self._text) - self._at
            if held > LONGEST:
                raise NotATrace(f"a value of more than {LONGEST} characters")
            self._fill(max(CHUNK, held))

    def _fill(self, count: int) -> None:
        more = self._file.read(count)
        self._ended = more == ""
        self._text, self._at = self._text[self._at :] + more, 0


def is_cut(problem: ValueError, text: str) -> bool:
    """Whether the decoder stopped because the text did: at its end, within a string, an escape, a word or a number."""
    if not isinstance(problem, json.JSONDecodeError):
        return False
    rest = text[problem.pos :].strip()
    in_text = problem.msg.startswith("Unterminated string") or (
        problem.msg.startswith("Invalid \\") and len(rest) < ESCAPE
    )
    in_word = any(word.startswith(rest) for word in WORDS)  # also where nothing is left
    return in_text or in_word or NUMBERS.fullmatch(rest) is not None


def members(scanner: Scanner) -> Iterator[tuple[str, Any]]:
    """What read() yields, from an object with traceEvents or from a bare list of events."""
    yield from events(scanner) if scanner.peek() == "[" else members_of_object(scanner)
    if scanner.peek() != "":  # reading to the end also checks the sum of a compressed file
        raise NotATrace("more text after the end of the trace")


def members_of_object(scanner: Scanner) -> Iterator[tuple[str, Any]]:
    """(name, value) of each member, and each event of traceEvents."""
    scanner.take("{")
    seen = False
    while scanner.peek() != "}":
        name = scanner.value()
        scanner.take(":")
        if name == EVENTS:
            seen = True
            yield from events(scanner)
        else:
            yield str(name), scanner.value()
        if scanner.peek() != "}":
            scanner.take(",")
    scanner.take("}")
    if not seen:
        raise NotATrace(f"no {EVENTS} in it")


def events(scanner: Scanner) -> Iterator[tuple[str, Any]]:
    """Each element of the list that comes next."""
    scanner.take("[")
    while scanner.peek() != "]":
        yield EVENTS, scanner.value()
        if scanner.peek() != "]":
            scanner.take(",")
    scanner.take("]")
