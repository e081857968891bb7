"""Why a fact is not there, in words for a user."""

from importlib.metadata import PackageNotFoundError

from appliance.errors import ApplianceError


class Absent(Exception):
    """A fact that cannot be had here. Its text is the reason, and is shown as it stands."""


def in_words(error: Exception) -> str:
    """The reason that an error is: its own words where it was made for users, with its kind where it was not."""
    if isinstance(error, PackageNotFoundError):
        return f"{error.name} is not installed"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, Absent | ApplianceError | TimeoutError) and str(error):
        return str(error)
    return " ".join(f"{type(error).__name__}: {error}".split())
