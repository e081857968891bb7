"""Arguments and variables as a plan takes them: each with the reason for it."""

from typing import NamedTuple


class Setting(NamedTuple):
    """A flag with its value or values (None: a switch), or a variable with its value, and why it is set."""

    name: str
    value: str | tuple[str, ...] | None
    why: str

    def values(self) -> tuple[str, ...]:
        """Its values, each a word."""
        if self.value is None:
            return ()
        return (self.value,) if isinstance(self.value, str) else self.value


def words(settings: list[Setting]) -> list[str]:
    """The argument words of flags."""
    return [word for setting in settings for word in (setting.name, *setting.values())]


def variables(settings: list[Setting]) -> dict[str, str]:
    """The environment that variables make."""
    return {setting.name: " ".join(setting.values()) for setting in settings}


def reasons(settings: list[Setting]) -> list[str]:
    """One line "name value: reason" for each."""
    return [f"{' '.join((setting.name, *setting.values()))}: {setting.why}" for setting in settings]
