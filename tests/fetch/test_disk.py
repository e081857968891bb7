"""A disk that is too small: a tmpfs of limited size."""

import subprocess

import pytest

from tests.fetch.fetched import content, line_of, whole
from tests.helpers.hub_server import COMMIT

PAGE = 4096


@pytest.fixture
def small_disk(tmp_path, as_root):
    """Mount a tmpfs of `pages` pages; returns its folder."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(pages):
        size = ["-o", f"size={pages * PAGE}"]
        done = subprocess.run(["mount", "-t", "tmpfs", *size, "tmpfs", folder], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no tmpfs can be mounted: {done.stderr.strip()}")
        return folder

    yield mount
    subprocess.run(["umount", folder], capture_output=True)


def test_too_small_it_says_how_much_is_missing_before_a_byte_is_fetched(small_disk, fetch, hub):
    disk = small_disk(500)
    line = line_of(fetch(to=disk), 2)
    assert "4070010 bytes are still to be fetched" in line and "2048000 left" in line
    assert hub.sent == 0 and content(disk) == {}


def test_what_is_there_already_is_counted(small_disk, fetch, repository):
    disk = small_disk(1010)
    (disk / COMMIT).mkdir()
    whole(fetch(to=disk))
    assert content(disk / COMMIT) == content(repository)
    (disk / COMMIT / "model-1.safetensors").unlink()
    whole(fetch(to=disk))
    assert content(disk / COMMIT) == content(repository)
