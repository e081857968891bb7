"""Arguments and variables as a plan takes them: each with the reason for it."""

from typing import NamedTuple


class Setting(NamedTuple):
    """A flag with its value (None: a switch), or a variable with its value, and why it is set."""

    name: str
    value: str | None
    why: str


def words(settings: list[Setting]) -> list[str]:
    """The argument words of flags."""
    return [word for setting in settings for word in (setting.name, setting.value) if word is not None]


def variables(settings: list[Setting]) -> dict[str, str]:
    """The environment that variables make."""
    return {setting.name: setting.value or "" for setting in settings}


def reasons(settings: list[Setting]) -> list[str]:
    """One line "name value: reason" for each."""
    return [f"{s.name}{'' if s.value is None else ' ' + s.value}: {s.why}" for s in settings]
