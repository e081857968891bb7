"""Stand-in for torchvision's functional transforms (see not_in_cpu_engine)."""

from functools import partial

from not_in_cpu_engine import placeholder

from torchvision.transforms import InterpolationMode  # noqa: F401  re-exported, as in torchvision

__getattr__ = partial(placeholder, __name__)
