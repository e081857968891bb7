"""How long each candidate takes on this GPU: graph replay, as the engine will run it."""

import logging
from collections.abc import Callable

import torch

from ..bench.timing import Stopwatch

logger = logging.getLogger(__name__)
REPETITIONS = 20


def microseconds(functions: dict[str, Callable[[], object]], device: torch.device) -> dict[str, float]:
    """The median of each function that runs here and can be captured; one that raises is left out, with a log line."""
    times = {}
    with torch.cuda.device(device), torch.inference_mode():
        stopwatch = Stopwatch(device, REPETITIONS)
        for name, function in functions.items():
            try:
                times[name] = round(stopwatch.time(function).median, 2)
            except Exception as error:  # whatever a foreign kernel raises, the others can serve
                torch.cuda.synchronize()
                logger.info("appliance kernels: %s does not run here (%s: %s)", name, type(error).__name__, error)
    return times
