"""One entry point of the engine, served by the kernel that was measured to be fastest for the shapes of each call."""

import logging
from collections import Counter
from collections.abc import Callable

import torch

from .choices import Choices
from .entry import APPLIANCE, STOCK, Bucket, Entry, Kernel
from .measure import microseconds

logger = logging.getLogger(__name__)


def capturing() -> bool:
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


def fastest(times: dict[str, list[float]]) -> str:
    """The kernel of the least time over all measured calls, of those that are slower than stock at none of them."""
    stock = times.get(STOCK)
    if stock is None:
        return STOCK
    never_slower = [name for name in times if all(a <= b for a, b in zip(times[name], stock, strict=True))]
    return min(never_slower, key=lambda name: sum(times[name]))


class Dispatch:
    """AROUND hook of an entry point.

    A bucket of shapes is measured at its first call outside a graph capture: SGLang runs every batch size so before it
    captures it. A bucket first seen within a capture, and every call that our kernel does not take, is stock's.
    """

    def __init__(self, entry: Entry, open_choices: Callable[[Entry, torch.device], Choices], measure=microseconds):
        self.entry = entry
        self._open_choices = open_choices
        self._measure = measure
        self._choices: Choices | None = None
        self._refusals: set[str] = set()
        self.chosen: dict[Bucket, str] = {}
        self.calls: Counter[str] = Counter()
        """How often each kernel was called from Python; the replays of a graph are not seen here."""

    @property
    def file(self) -> str | None:
        return None if self._choices is None else str(self._choices.path)

    def __call__(self, stock: Kernel, *args, **kwargs):
        call = dict(zip(self.entry.PARAMETERS, args, strict=False)) | kwargs
        name = self._choice(stock, call)
        try:
            self.calls[name] += 1
            return self.entry.candidates(stock)[name](**call)
        except ValueError as refusal:
            if name != APPLIANCE:
                raise
            self._tell_once(str(refusal))
            self.calls[STOCK] += 1
            return stock(**call)

    def _tell_once(self, refusal: str) -> None:
        """A line for each kind of call that is refused: such calls may come with every token."""
        if refusal not in self._refusals:
            self._refusals.add(refusal)
            logger.warning("appliance kernels: such calls go to the stock kernel: %s", refusal)

    def _choice(self, stock: Kernel, call: dict) -> str:
        bucket = self.entry.bucket_of(call)
        if bucket is None:
            return STOCK
        if bucket not in self.chosen:
            if capturing():
                return STOCK
            self.chosen[bucket] = self._known(bucket, stock, call)
        return self.chosen[bucket]

    def _known(self, bucket: Bucket, stock: Kernel, call: dict) -> str:
        device = self.entry.device_of(call)
        if self._choices is None:
            self._choices = self._open_choices(self.entry, device)
        kept = self._choices.get(str(bucket))
        if kept is not None:
            return kept
        try:
            times = self._measure(self.entry.candidates(stock), bucket.calls_like(call), device)
        except Exception as error:  # out of memory, say: the engine starts all the same, on its own kernel
            logger.warning("appliance kernels: %s: not measured, stock (%s)", bucket, error)
            return STOCK
        choice = fastest(times)
        logger.info("appliance kernels: %s: %s (us: %s)", bucket, choice, times)
        return self._choices.keep(str(bucket), choice, times)
