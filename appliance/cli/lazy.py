"""Groups whose commands live in modules of their own, imported only when they are called."""

import importlib

import click


class LazyGroup(click.Group):
    """A group made of {command: its one-line help}; the module of a command is `module` with its name in place of {}.

    `hidden` ones are not listed.
    """

    def __init__(self, *args, commands_of: dict[str, str], module: str, hidden: list[str] | None = None, **kwargs):
        super().__init__(*args, **kwargs)
        self._commands_of = commands_of
        self._module = module
        self._hidden = hidden or []

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self._commands_of)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self._commands_of and name not in self._hidden:
            return None
        return importlib.import_module(self._module.format(name.replace("-", "_"))).command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self._commands_of.items()))
