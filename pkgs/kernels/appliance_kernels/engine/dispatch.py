"""One entry point of the engine, served by the kernel that was measured to be fastest for the shapes of each call."""

import logging
from collections import Counter
from collections.abc import Callable

import torch

from .candidates import APPLIANCE, STOCK, candidates
from .choices import Choices
from .decode_case import Bucket
from .measure import microseconds

logger = logging.getLogger(__name__)


def capturing() -> bool:
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


class Dispatch:
    """AROUND hook of `flash_mla_with_kvcache_sm120`.

    A bucket of shapes is measured at its first call outside a graph capture: SGLang runs every batch size so before it
    captures it. A bucket first seen within a capture, and every call that our kernel does not take, is stock's.
    """

    def __init__(self, open_choices: Callable[[torch.device], Choices], measure=microseconds):
        self._open_choices = open_choices
        self._measure = measure
        self._choices: Choices | None = None
        self.chosen: dict[Bucket, str] = {}
        self.calls: Counter[str] = Counter()
        """How often each kernel was called from Python; the replays of a graph are not seen here."""

    @property
    def file(self) -> str | None:
        return None if self._choices is None else str(self._choices.path)

    def __call__(self, stock: Callable[..., tuple], **call) -> tuple:
        name = self._choice(stock, call)
        try:
            self.calls[name] += 1
            return candidates(stock)[name](**call)
        except ValueError as refusal:
            if name != APPLIANCE:
                raise
            logger.warning("appliance kernels: a call goes to the stock kernel: %s", refusal)
            self.calls[STOCK] += 1
            return stock(**call)

    def _choice(self, stock, call: dict) -> str:
        bucket = Bucket.of(call)
        if bucket is None:
            return STOCK
        if bucket not in self.chosen:
            if capturing():
                return STOCK
            self.chosen[bucket] = self._known(bucket, stock, call)
        return self.chosen[bucket]

    def _known(self, bucket: Bucket, stock, call: dict) -> str:
        device = call["q"].device
        if self._choices is None:
            self._choices = self._open_choices(device)
        kept = self._choices.get(str(bucket))
        if kept is not None:
            return kept
        made = bucket.call_like(call)
        functions = {
            name: lambda candidate=candidate: candidate(**made) for name, candidate in candidates(stock).items()
        }
        try:
            times = self._measure(functions, device)
        except Exception as error:  # out of memory, say: the engine starts all the same, on its own kernel
            logger.warning("appliance kernels: %s: not measured, stock (%s)", bucket, error)
            return STOCK
        fastest = min(times, key=times.get, default=STOCK)
        logger.info("appliance kernels: %s: %s (us: %s)", bucket, fastest, times)
        return self._choices.keep(str(bucket), fastest, times)
