"""Stand-in for torchvision on the CPU engine (see not_in_cpu_engine)."""

from functools import partial

from not_in_cpu_engine import placeholder

__version__ = "0.28.0+standin"  # transformers parses it, and compares it with 0.27
__getattr__ = partial(placeholder, __name__)
