"""Errors that reach the user as one clear line, each with its exit code."""

import re

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class ApplianceError(Exception):
    """Base of all errors with a line for the user: what, where, what was expected."""

    exit_code = 1


class CheckFailed(ApplianceError):
    """The thing checked does not hold, or a worker died: exit code 1."""

    exit_code = 1


class OneLine(ApplianceError):
    """An error whose text quotes what somebody's file or server holds: whatever that is, it stays one line."""

    def __init__(self, words: str):
        super().__init__(CONTROL.sub("?", words))


class InputError(OneLine):
    """Bad usage or unreadable input: exit code 2, nothing was changed."""

    exit_code = 2


class ProbeIncomplete(OneLine):
    """A probe could not complete, so nothing was concluded: exit code 3."""

    exit_code = 3
