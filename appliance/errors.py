"""Errors that reach the user as one clear line, each with its exit code."""


class ApplianceError(Exception):
    """Base of all errors with a line for the user: what, where, what was expected."""

    exit_code = 1


class CheckFailed(ApplianceError):
    """The thing checked does not hold, or a worker died: exit code 1."""

    exit_code = 1


class InputError(ApplianceError):
    """Bad usage or unreadable input: exit code 2, nothing was changed."""

    exit_code = 2


class ProbeIncomplete(ApplianceError):
    """A probe could not complete, so nothing was concluded: exit code 3."""

    exit_code = 3
