"""From a real HTTP server that speaks the hub's API, with the real client, in a process of its own."""

import json
import os
import signal
import subprocess
import time

import pytest

from appliance.documents import CheckpointManifest
from appliance.fetch.layout import MANIFEST, PARTIAL
from tests.fetch.conftest import WEIGHTS
from tests.fetch.fetched import bodies, content, is_whole, line_of, whole
from tests.helpers.checkpoints import sha256
from tests.helpers.cli import APPLIANCE, wait_for
from tests.helpers.hub_server import COMMIT, REPO

LARGE = "model-1.safetensors"
OTHER = "f" * 40


def test_every_file_comes_and_the_manifest_has_its_sha256(fetch, hub, home, repository):
    done = fetch("--json")
    whole(done)
    manifest = CheckpointManifest.parse(done.stdout, "stdout")
    assert (manifest.model, manifest.revision) == (REPO, COMMIT)
    assert content(home / COMMIT) == content(repository)
    assert {file.name: file.sha256 for file in manifest.files} == {
        name: sha256(repository / name) for name in content(repository)
    }
    assert manifest == CheckpointManifest.read(home / COMMIT / MANIFEST)
    assert not (home / COMMIT / PARTIAL).exists()


def test_whole_already_it_needs_no_hub(fetch, hub, home):
    whole(fetch())
    asked = len(hub.requests)
    whole(fetch("--revision", COMMIT, HF_ENDPOINT="http://127.0.0.1:9"))
    whole(fetch("--revision", COMMIT, "--deep", HF_ENDPOINT="http://127.0.0.1:9"))
    assert len(hub.requests) == asked


def test_a_branch_without_a_hub_is_one_line(fetch):
    assert "cannot be reached" in line_of(fetch(HF_ENDPOINT="http://127.0.0.1:9"), 3)


def test_a_truncated_file_is_found_at_once_and_it_alone_comes_again(fetch, hub, home, repository):
    whole(fetch())
    os.truncate(home / COMMIT / LARGE, 1000)
    hub.requests.clear()
    done = fetch("--revision", COMMIT)
    whole(done)
    assert f"{LARGE}: 1000 bytes, expected 3000000; it is fetched again" in done.stderr
    assert [path for host, path, _ in hub.requests if host == "cdn"] == [f"/blob/{LARGE}"]
    assert content(home / COMMIT) == content(repository)


def test_a_flipped_byte_behind_an_unchanged_time_is_found_by_deep_only(fetch, hub, home, repository):
    whole(fetch())
    path = home / COMMIT / LARGE
    status = path.stat()
    with path.open("r+b") as file:
        first = file.read(1)
        file.seek(0)
        file.write(bytes([first[0] ^ 1]))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    hub.requests.clear()
    whole(fetch("--revision", COMMIT))
    assert hub.requests == [] and content(home / COMMIT) != content(repository)
    whole(fetch("--revision", COMMIT, "--deep"))
    assert [path for host, path, _ in hub.requests if host == "cdn"] == [f"/blob/{LARGE}"]
    assert content(home / COMMIT) == content(repository)


def test_a_connection_that_is_cut_goes_on_where_it_was(fetch, hub, home, repository):
    hub.cuts = 3
    whole(fetch("--workers", 1))
    assert content(home / COMMIT) == content(repository)
    assert hub.sent < sum(path.stat().st_size for path in repository.rglob("*") if path.is_file()) + 1000
    assert any(headers.get("range", "").startswith("bytes=1500000") for _, _, headers in hub.requests)


def test_a_server_without_ranges_is_read_from_the_start_again(fetch, hub, home, repository):
    hub.cuts, hub.ranges = 1, False
    whole(fetch("--workers", 1))
    assert content(home / COMMIT) == content(repository)


def test_a_file_corrupted_on_the_way_comes_again_alone(fetch, hub, home, repository):
    hub.corrupt[LARGE] = 1
    whole(fetch())
    assert content(home / COMMIT) == content(repository)
    assert bodies(hub, LARGE) == 2 and bodies(hub, "model-2.safetensors") == 1


@pytest.mark.parametrize("name", [LARGE, "config.json"], ids=["sha256 of a weight file", "git blob of a small file"])
def test_a_file_that_is_never_right_ends_it_and_is_not_taken(fetch, hub, home, name):
    hub.corrupt[name] = 100
    line = line_of(fetch(), 1)
    assert name in line and "expected" in line and "3 times" in line
    assert not (home / COMMIT / name).exists() and not is_whole(home / COMMIT)


def test_killed_in_the_middle_it_goes_on(fetch, hub, home, repository, settings):
    hub.rate = 1_000_000
    process = subprocess.Popen(
        [*APPLIANCE, "fetch", REPO, "--to", str(home)], env=os.environ | settings, stderr=subprocess.DEVNULL
    )
    part = home / COMMIT / PARTIAL / LARGE
    wait_for(lambda: part.exists() and part.stat().st_size > 500_000, 30, "half a file")
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    assert not is_whole(home / COMMIT)
    had = part.stat().st_size
    hub.rate = None
    expected = json.loads(fetch("--dry-run", "--json").stdout)
    assert expected["there"] >= had and expected["to_fetch"] == expected["size"] - expected["there"]
    hub.requests.clear()
    whole(fetch())
    assert [headers["range"] for host, path, headers in hub.requests if host == "cdn" and LARGE in path] == [
        f"bytes={had}-"
    ]
    assert content(home / COMMIT) == content(repository)


def test_interrupted_it_ends_soon_and_keeps_what_came(hub, home, settings):
    hub.rate = 100_000
    process = subprocess.Popen(
        [*APPLIANCE, "fetch", REPO, "--to", str(home)], env=os.environ | settings, stderr=subprocess.PIPE, text=True
    )
    part = home / COMMIT / PARTIAL / LARGE
    wait_for(lambda: part.exists() and part.stat().st_size > 0, 30, "first bytes")
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=10)
    assert process.returncode == 130 and said.splitlines()[-1] == "interrupted" and "Traceback" not in said
    assert part.stat().st_size > 0


def test_two_at_once_are_refused(hub, home, settings, fetch):
    hub.rate = 500_000
    process = subprocess.Popen(
        [*APPLIANCE, "fetch", REPO, "--to", str(home)], env=os.environ | settings, stderr=subprocess.DEVNULL
    )
    wait_for(lambda: (home / COMMIT / PARTIAL).exists(), 30, "the first at work")
    assert "another fetch is at work" in line_of(fetch(), 2)
    hub.rate = None
    assert process.wait(60) == 0


def test_the_rate_holds_for_all_workers_together(fetch, repository):
    size = sum(WEIGHTS.values())
    start = time.monotonic()
    whole(fetch("--rate", "1500K"))
    assert time.monotonic() - start > size / 1_500_000 - 0.5


@pytest.mark.parametrize(
    "fault, code, words",
    [
        ((401, "RepoNotFound", {}), 2, "not authorised (401)"),
        ((403, "GatedRepo", {}), 2, "gated or forbidden (403)"),
        ((404, "RepoNotFound", {}), 2, "no such repository (404)"),
        ((429, "", {"Retry-After": "7"}), 3, "too many requests (429); retry after 7 s"),
        ((503, "", {}), 3, "the hub answered 503"),
    ],
)
def test_what_the_hub_refuses_is_one_line(fetch, hub, home, fault, code, words):
    hub.fault = fault
    assert words in line_of(fetch(), code)
    assert content(home) == {}


def test_a_revision_that_is_not_there_is_one_line(fetch):
    assert "no such revision (404)" in line_of(fetch("--revision", "no-such-branch"), 2)


def test_a_hub_that_is_silent_is_one_line(fetch, hub):
    hub.hang_s = 30
    line = line_of(fetch("--workers", 8, HF_HUB_DOWNLOAD_TIMEOUT="1"), 3)
    assert "did not answer in time (5 times)" in line


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_refusal_of_a_file_is_waited_out(fetch, hub, home, repository, status):
    hub.file_fault, hub.refusals = (status, "", {"Retry-After": "1"}), 2
    whole(fetch())
    assert content(home / COMMIT) == content(repository)


def test_a_lasting_refusal_of_a_file_is_one_line(fetch, hub, home):
    hub.file_fault = (403, "GatedRepo", {})
    assert "gated or forbidden (403)" in line_of(fetch(), 2)
    assert not is_whole(home / COMMIT)


def test_not_a_hub_id_is_refused(fetch):
    assert "expected org/name" in line_of(fetch(model="nothing"), 2)


@pytest.mark.parametrize("rate", ["0", "fast", "-1", "1T"])
def test_not_a_rate_is_refused(fetch, rate):
    done = fetch("--rate", rate)
    assert done.returncode == 2 and "expected bytes a second" in done.stderr


def test_files_that_are_there_without_a_manifest_are_hashed_and_kept(fetch, hub, home, repository):
    home.mkdir()
    (home / LARGE).write_bytes((repository / LARGE).read_bytes())
    whole(fetch("--flat"))
    assert content(home) == content(repository)
    assert bodies(hub, LARGE) == 0


def test_a_flat_folder_is_replaced_by_the_next_revision(fetch, hub, home, repository):
    whole(fetch("--flat"))
    (repository / "model-2.safetensors").rename(repository / "model-4.safetensors")
    hub.commit = OTHER
    whole(fetch("--flat", "--revision", OTHER))
    assert content(home) == content(repository)
    assert bodies(hub, LARGE) == 1


def test_the_old_revision_stays_until_it_is_pruned_and_shares_what_is_the_same(fetch, hub, home, repository):
    whole(fetch("--switch"))
    old = content(repository)
    (repository / "model-2.safetensors").write_bytes(b"new weights")
    hub.commit = OTHER
    whole(fetch())
    assert os.readlink(home / "current") == COMMIT and content(home / COMMIT) == old
    assert content(home / OTHER) == content(repository)
    assert bodies(hub, LARGE) == 1 and (home / OTHER / LARGE).samefile(home / COMMIT / LARGE)
    whole(fetch("--revision", OTHER, "--switch", "--prune"))
    assert os.readlink(home / "current") == OTHER and not (home / COMMIT).exists()
    assert content(home / OTHER) == content(repository)


def test_a_shared_file_that_went_bad_is_repaired_without_touching_the_other_revision(fetch, hub, home, repository):
    whole(fetch())
    hub.commit = OTHER
    whole(fetch())
    bad = b"x" * 3_000_000
    (home / COMMIT / LARGE).write_bytes(bad)
    whole(fetch("--revision", OTHER))
    assert content(home / OTHER) == content(repository)
    assert (home / COMMIT / LARGE).read_bytes() == bad


def test_a_manifest_that_cannot_be_read_is_written_anew(fetch, hub, home, repository):
    whole(fetch())
    (home / COMMIT / MANIFEST).write_text("{")
    sent = hub.sent
    whole(fetch())
    assert is_whole(home / COMMIT) and hub.sent == sent


def test_a_dry_run_writes_nothing(fetch, home):
    done = fetch("--dry-run", "--json")
    whole(done)
    expected = json.loads(done.stdout)
    assert expected["to_fetch"] == expected["size"] == sum(WEIGHTS.values()) + 9
    assert not home.exists()
