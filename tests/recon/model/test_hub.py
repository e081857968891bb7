"""The real huggingface_hub client, in a process of its own as a user runs it, against a local hub."""

import json
import os
import time

import pytest

from appliance.recon.model.checkpoint import INDEX
from tests.helpers import checkpoints as made
from tests.helpers.cli import appliance
from tests.helpers.hub_server import COMMIT, REPO, Hub, serve

TOKEN = "hf_notARealTokenButLongEnoughToLookLikeOne"
SHARDS = 4


@pytest.fixture
def folder(tmp_path):
    """A sharded checkpoint of fp8 attention and nvfp4 experts, with holes for data (45 MiB of them in one tensor)."""
    tensors = made.moe_tensors(made.fp8_block, made.nvfp4)
    tensors["model.embed_tokens.weight"] = ("BF16", [90_000, 256])
    return made.write_checkpoint(tmp_path / "repo", made.moe_config(), tensors, SHARDS)


@pytest.fixture
def hub(folder):
    hub = Hub(folder)
    servers = serve(hub)
    yield hub
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def recon(hub, tmp_path):
    """Run `appliance recon model REF` against the hub; no setting of this machine's user is seen."""

    def run(*words, reference=REPO, **env):
        settings = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "0", "HF_TOKEN": ""}
        return appliance("recon", "model", reference, *words, env=settings | env, timeout=60)

    return run


def report_of(done) -> dict:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def of_the_model(hub) -> list[tuple[str, str, dict[str, str]]]:
    """The requests for the repository and its files (the client asks for a registry of its own as well)."""
    return [request for request in hub.requests if REPO in request[1] or request[0] == "cdn"]


def line_of(done, code: int) -> str:
    """The one error line of a run that ended with `code`."""
    assert done.returncode == code, done.stderr
    assert done.stdout == "" and "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    return line


def test_the_hub_and_the_folder_tell_the_same(recon, hub, folder):
    from appliance.recon.model import model_report

    remote, local = report_of(recon("--json")), model_report(folder).model_dump(mode="json")
    assert (remote["origin"], remote["revision"], remote["path"]) == ("hub", COMMIT, REPO)
    own = {"path", "origin", "revision", "files", "sources", "claims"}
    assert {key: value for key, value in remote.items() if key not in own} == {
        key: value for key, value in local.items() if key not in own
    }
    assert {file["name"]: file["sha256"] for file in remote["files"]} == {
        path.name: made.sha256(path) for path in folder.glob("*.safetensors")
    }


def test_no_weight_is_downloaded_and_nothing_is_written(recon, hub, folder, tmp_path):
    report_of(recon("--json"))
    small = sum(path.stat().st_size for path in folder.glob("*.json"))
    assert hub.sent < small + SHARDS * 100_000
    ranges = [headers.get("range") for host, _, headers in hub.requests if host == "cdn"]
    assert len(ranges) == SHARDS and all(ranges)  # with an index at hand one request a file is enough
    assert not list((tmp_path / "hf").rglob("*.safetensors"))


def test_a_single_file_without_an_index(recon, folder):
    for path in [*folder.glob("*.safetensors"), folder / INDEX]:
        path.unlink()
    made.write_safetensors(folder / "model.safetensors", made.moe_tensors(made.plain, made.plain))
    report = report_of(recon("--json"))
    assert [file["name"] for file in report["files"]] == ["model.safetensors"]


def test_a_header_longer_than_the_first_request(recon, hub, folder):
    for path in [*folder.glob("*.safetensors"), folder / INDEX]:
        path.unlink()
    many = {f"model.layers.0.mlp.experts.{number}.up_proj.weight": ("BF16", [8, 8]) for number in range(3000)}
    made.write_safetensors(folder / "model.safetensors", many)
    assert report_of(recon("--json"))["tensor_types"] == {"BF16": 3000}
    assert [host for host, *_ in hub.requests].count("cdn") == 2


def test_a_server_that_ignores_ranges_is_hung_up_on(recon, hub):
    hub.ranges = False
    report_of(recon("--json"))
    assert hub.sent < 16 << 20  # of 45 MiB: what was on its way already


@pytest.mark.parametrize("words", [["--revision", "v1"], ["--revision", COMMIT]])
def test_a_revision(recon, hub, words):
    assert report_of(recon("--json", *words))["revision"] == COMMIT
    asked = [path for _, path, _ in of_the_model(hub) if "/revision/" in path]
    assert asked == [f"/api/models/{REPO}/revision/{words[1]}"]
    assert all(f"/resolve/{COMMIT}/" in path for _, path, _ in hub.requests if "/resolve/" in path)


def test_a_revision_after_an_at_sign(recon, hub):
    report_of(recon("--json", reference=f"{REPO}@v1"))
    assert of_the_model(hub)[0][1].endswith("/revision/v1")


def test_a_token_goes_to_the_hub_alone_and_into_no_output(recon, hub):
    hub.token = TOKEN
    done = recon("--json", HF_TOKEN=TOKEN)
    report_of(done)
    assert TOKEN not in done.stdout + done.stderr
    sent = {(host, headers.get("authorization")) for host, _, headers in of_the_model(hub)}
    assert sent == {("hub", f"Bearer {TOKEN}"), ("cdn", None)}


def test_a_token_file(recon, hub, tmp_path):
    hub.token = TOKEN
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "token").write_text(TOKEN)
    report_of(recon("--json"))


def test_a_token_that_is_refused_is_not_printed(recon, hub):
    hub.token = "another"
    done = recon(HF_TOKEN=TOKEN)
    assert "not authorised (401)" in line_of(done, 2)
    assert TOKEN not in done.stdout + done.stderr


def test_a_private_repository(recon, hub):
    hub.token = TOKEN
    assert "no such repository, or a private one" in line_of(recon(), 2)


@pytest.mark.parametrize("fault", ["fault", "file_fault"])
def test_a_gated_repository(recon, hub, fault):
    """Gated repositories list their files to everybody; the files themselves are refused."""
    setattr(hub, fault, (403, "GatedRepo", {"X-Error-Message": "Access to model is restricted"}))
    line = line_of(recon(), 2)
    assert "gated or forbidden (403)" in line and "accept the terms" in line


def test_no_such_repository(recon):
    assert "org/other: no such repository (404)" in line_of(recon(reference="org/other"), 2)


def test_no_such_revision(recon):
    line = line_of(recon("--revision", "v9"), 2)
    assert f"{REPO}@v9: no such revision (404)" in line


def test_a_repository_that_is_no_model(recon, folder):
    (folder / "config.json").unlink()
    assert "no config.json in the repository" in line_of(recon(), 2)


@pytest.mark.parametrize(
    "headers, words",
    [
        ({"Retry-After": "37"}, "retry after 37 s"),
        ({"RateLimit": '"api";r=0;t=55'}, "retry after 55 s"),
        ({}, "the hub does not say how long"),
    ],
)
@pytest.mark.parametrize("fault", ["fault", "file_fault"])
def test_too_many_requests(recon, hub, fault, headers, words):
    setattr(hub, fault, (429, "", headers))
    start = time.monotonic()
    line = line_of(recon(), 3)
    assert "too many requests (429)" in line and words in line
    assert time.monotonic() - start < 10


def test_a_server_error(recon, hub):
    hub.file_fault = (503, "", {})
    assert "the hub answered 503" in line_of(recon(), 3)


def test_a_connection_cut_in_mid_body_is_tried_again(recon, hub):
    hub.cuts = 2
    report_of(recon("--json"))


def test_a_connection_that_is_always_cut(recon, hub):
    hub.cuts = 1000
    line = line_of(recon(), 3)
    assert "the connection was cut (3 times); expected the whole answer" in line


def test_an_answer_that_does_not_come(recon, hub):
    hub.hang_s = 20
    start = time.monotonic()
    assert "did not answer in time" in line_of(recon(HF_HUB_DOWNLOAD_TIMEOUT="1"), 3)
    assert time.monotonic() - start < 15


def test_nobody_there(recon, hub):
    line = line_of(recon(HF_ENDPOINT="http://user:secret@127.0.0.1:9"), 3)
    assert "the hub cannot be reached" in line and "secret" not in line


def test_a_repository_with_a_file_missing_and_one_broken(recon, hub, folder):
    names = sorted(path.name for path in folder.glob("*.safetensors"))
    (folder / names[0]).unlink()
    os.truncate(folder / names[1], 1000)
    done = recon("--json")
    assert done.returncode == 1
    problems = {(problem["kind"], problem["file"]) for problem in json.loads(done.stdout)["integrity"]["problems"]}
    assert problems == {("missing", names[0]), ("truncated", names[1])}


def test_a_repository_that_keeps_pointers_instead_of_weights(recon, folder):
    name = next(folder.glob("*.safetensors"))
    name.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    done = recon("--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["integrity"]["problems"][0]["kind"] == "lfs-pointer"


def test_offline_without_a_snapshot(recon, hub):
    line = line_of(recon(HF_HUB_OFFLINE="1"), 2)
    assert "offline (HF_HUB_OFFLINE is set)" in line
    assert hub.requests == []


def test_offline_with_a_snapshot_in_the_cache(recon, hub, folder, tmp_path):
    from huggingface_hub import constants

    assert constants.REPO_ID_SEPARATOR == "--"
    base = tmp_path / "hf" / "hub" / f"models--{REPO.replace('/', '--')}"
    (base / "refs").mkdir(parents=True)
    (base / "refs" / "main").write_text(COMMIT)
    (base / "snapshots").mkdir()
    folder.rename(base / "snapshots" / COMMIT)
    report = report_of(recon("--json", HF_HUB_OFFLINE="1"))
    assert (report["path"], report["revision"], report["origin"]) == (REPO, COMMIT, "folder")
    assert hub.requests == []


def test_hashes_of_a_folder_against_the_hub(recon, hub, folder):
    report = report_of(recon("--hash", "--against", REPO, "--json", reference=str(folder)))
    assert report["integrity"]["hashed"] == SHARDS
    copy = folder.parent / "copy"
    folder.rename(copy)
    folder.mkdir()
    for path in copy.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    broken = sorted(copy.glob("*.safetensors"))[1]
    with broken.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x01")
    done = recon("--hash", "--against", REPO, "--json", reference=str(copy))
    assert done.returncode == 1
    (problem,) = json.loads(done.stdout)["integrity"]["problems"]
    assert (problem["kind"], problem["file"]) == ("changed", broken.name)
    assert "sha256" in problem["words"] and REPO in problem["words"]
