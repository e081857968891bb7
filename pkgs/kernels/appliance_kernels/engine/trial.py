"""Kernels on trial: built and checked without a GPU, and never run on one. They serve only where that is asked for."""

import os

SWITCH = "APPLIANCE_KERNELS_TRIAL"


def wanted() -> bool:
    """Whether $APPLIANCE_KERNELS_TRIAL is on: prefill and top-k, so that somebody with a GPU can try them."""
    return os.environ.get(SWITCH) == "on"
