"""This environment at places where a hardened unit sees it: it sees neither /home nor /root nor /tmp."""

import sys
import sysconfig
from pathlib import Path


def interpreter(folder: Path) -> tuple[Path, Path]:
    """This environment, made in `folder` to be at /srv/environment over an interpreter at /srv/python; its packages."""
    packages = Path(sysconfig.get_path("purelib"))
    environment = folder / "environment"
    (environment / "bin").mkdir(parents=True)
    (environment / packages.relative_to(sys.prefix)).mkdir(parents=True)
    (environment / "bin/python").symlink_to(f"/srv/python/bin/{Path(sys.executable).resolve().name}")
    (environment / "pyvenv.cfg").write_text("home = /srv/python/bin\ninclude-system-site-packages = false\n")
    return environment, packages


def python_places(folder: Path) -> dict[str, Path]:
    """What has to be bound where in a machine so that /srv/environment/bin/python is this environment."""
    environment, packages = interpreter(folder)
    return {
        "/srv/python": Path(sys.base_prefix),
        "/srv/environment": environment,
        f"/srv/environment/{packages.relative_to(sys.prefix)}": packages,
    }
