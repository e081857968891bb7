"""Where the appliance keeps things: XDG base directories, each overridden by one environment variable."""

import os
from pathlib import Path


def cache_directory() -> Path:
    """Folder for what can be made again: $APPLIANCE_CACHE_DIR, $XDG_CACHE_HOME/appliance, ~/.cache/appliance."""
    return chosen("APPLIANCE_CACHE_DIR", "XDG_CACHE_HOME", ".cache")


def state_directory() -> Path:
    """Folder of a run's state and logs: $APPLIANCE_STATE_DIR, $XDG_STATE_HOME/appliance, ~/.local/state/appliance."""
    return chosen("APPLIANCE_STATE_DIR", "XDG_STATE_HOME", ".local/state")


def chosen(own: str, xdg: str, home: str) -> Path:
    """The folder that the variable `own` names, else "appliance" below the one `xdg` names, else below ~/`home`."""
    if os.environ.get(own):
        return Path(os.environ[own]).absolute()
    base = os.environ.get(xdg)
    return (Path(base) if base and os.path.isabs(base) else Path.home() / home) / "appliance"
