"""Signals that ask a verb to stop what it started."""

import signal

from appliance.supervisor.stop_signals import STOP_SIGNALS


def interruptible() -> None:
    """Make each of them raise KeyboardInterrupt, also where a shell started this process with SIGINT ignored."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.default_int_handler)
