"""How long each candidate takes on this GPU: graph replay, as the engine will run it."""

import logging

import torch

from ..bench.timing import Stopwatch
from .entry import Kernel

logger = logging.getLogger(__name__)
REPETITIONS = 20


def microseconds(kernels: dict[str, Kernel], calls: list[dict], device: torch.device) -> dict[str, list[float]]:
    """The median of each kernel at each call; one that raises or cannot be captured is left out, with a log line."""
    times = {}
    with torch.cuda.device(device), torch.inference_mode():
        stopwatch = Stopwatch(device, REPETITIONS)
        for name, kernel in kernels.items():
            try:
                times[name] = [round(stopwatch.time(lambda c=call, k=kernel: k(**c)).median, 2) for call in calls]
            except Exception as error:  # whatever a foreign kernel raises, the others can serve
                torch.cuda.synchronize()
                logger.info("appliance kernels: %s does not run here (%s: %s)", name, type(error).__name__, error)
    return times
