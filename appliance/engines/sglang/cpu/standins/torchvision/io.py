"""Stand-in for torchvision.io (see not_in_cpu_engine)."""

from functools import partial

from not_in_cpu_engine import placeholder

__getattr__ = partial(placeholder, __name__)
