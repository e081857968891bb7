"""pkgs/environment/link.py: wheels become one tree."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.nix_packages import PROJECT

SITE = Path("lib/python3.12/site-packages")


@pytest.fixture
def wheel(tmp_path):
    """Make the tree of an unpacked wheel from texts by path."""

    def make(name: str, files: dict[str, str]) -> Path:
        for path, text in files.items():
            file = tmp_path / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return tmp_path / name

    return make


def link(out: Path, *wheels: Path, left_out: str = "") -> subprocess.CompletedProcess:
    variables = {"out": out, "python": Path("/python"), "wheels": " ".join(map(str, wheels)), "leftOut": left_out}
    command = [sys.executable, PROJECT / "pkgs/environment/link.py"]
    environment = os.environ | {name: str(value) for name, value in variables.items()}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_folders_are_real_and_files_are_links(wheel, tmp_path):
    one, two = wheel("one", {f"{SITE}/ns/a.py": "a"}), wheel("two", {f"{SITE}/ns/b.py": "b"})
    assert link(tmp_path / "out", one, two).returncode == 0
    folder = tmp_path / "out" / SITE / "ns"
    assert not folder.is_symlink()
    assert (folder / "a.py").readlink() == one / SITE / "ns/a.py"
    assert (folder / "b.py").readlink() == two / SITE / "ns/b.py"


def test_a_file_that_two_wheels_give_must_be_the_same(wheel, tmp_path):
    one, two = wheel("one", {f"{SITE}/x.py": "1"}), wheel("two", {f"{SITE}/x.py": "1"})
    assert link(tmp_path / "out", one, two).returncode == 0
    other = wheel("other", {f"{SITE}/x.py": "2"})
    refused = link(tmp_path / "second", one, other)
    assert refused.returncode == 1
    assert refused.stderr == f"{SITE}/x.py: differs between {one}/{SITE}/x.py and {other}/{SITE}/x.py\n"
    assert link(tmp_path / "third", one, other, left_out=f"{SITE}/x.py").returncode == 0
    assert not (tmp_path / "third" / SITE / "x.py").exists()


def test_scripts_run_the_environments_python(wheel, tmp_path):
    entry_points = "[console_scripts]\ntool = pkg.cli:App.main\nwith-extra = pkg:run [extra]\n[other]\nx = y:z\n"
    files = {f"{SITE}/pkg-1.dist-info/entry_points.txt": entry_points, "bin/script": "#!python\nprint()\n"}
    out = tmp_path / "out"
    assert link(out, wheel("pkg", files)).returncode == 0
    assert {path.name for path in (out / "bin").iterdir()} == {
        "python", "python3", "python3.12", "script", "tool", "with-extra",
    }  # fmt: skip
    assert (out / "bin/script").read_text() == f"#!{out}/bin/python3.12\nprint()\n"
    tool = (out / "bin/tool").read_text()
    assert "from pkg.cli import App\n" in tool and "App.main()" in tool
    assert "from pkg import run\n" in (out / "bin/with-extra").read_text()
    assert all(os.access(out / "bin" / name, os.X_OK) for name in ("script", "tool"))


def test_python_finds_the_environment(wheel, tmp_path):
    assert link(tmp_path / "out", wheel("one", {f"{SITE}/x.py": ""})).returncode == 0
    assert "home = /python/bin" in (tmp_path / "out/pyvenv.cfg").read_text()
    assert (tmp_path / "out/bin/python").readlink() == Path("/python/bin/python3.12")
