"""What tests of `fetch` ask about a run and a folder."""

from pathlib import Path

from appliance.fetch.layout import MANIFEST


def whole(done) -> None:
    """The run ended well."""
    assert done.returncode == 0, done.stderr


def line_of(done, code: int) -> str:
    """The one error line of a run that ended with `code`."""
    assert done.returncode == code, done.stderr
    assert done.stdout == "" and "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1 and lines[0] == done.stderr.splitlines()[-1], done.stderr
    return lines[0].removeprefix("error: ")


def content(folder: Path) -> dict[str, bytes]:
    """The checkpoint's files below `folder`, by name."""
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    own = (".appliance", ".partial", "current")
    return {name: path.read_bytes() for name, path in files.items() if not name.startswith(own)}


def is_whole(folder: Path) -> bool:
    """Whether the folder says of itself that it is."""
    return (folder / MANIFEST).exists()


def bodies(hub, name: str) -> int:
    """How often the content of a weight file was asked for."""
    return sum(host == "cdn" and path == f"/blob/{name}" for host, path, _ in hub.requests)
