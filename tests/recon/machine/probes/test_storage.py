import json

import pytest

from appliance.recon.machine.probes import storage
from appliance.recon.machine.source import LocalSource


@pytest.fixture
def model(tmp_path):
    """Make a model folder of three shards."""

    def make(path: str):
        folder = tmp_path / path
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"]}))
        for number in (1, 2, 3):
            (folder / f"model-0000{number}-of-00003.safetensors").write_bytes(bytes(1000))
        return folder

    return make


def found(tmp_path, roots=("/data",)):
    return storage.models(LocalSource(tmp_path), list(roots)).facts.get("models")


def test_a_whole_folder(model, tmp_path):
    model("data/llama")
    (entry,) = found(tmp_path)
    assert (entry.path, entry.architecture, entry.weight_files, entry.weight_bytes) == (
        "/data/llama",
        "LlamaForCausalLM",
        3,
        3000,
    )
    assert entry.complete


@pytest.mark.parametrize(
    "spoil, problem",
    [
        (lambda path: path.unlink(), "1 of 3 shards missing (model-*-of-00003.safetensors)"),
        (lambda path: path.write_bytes(b""), "1 weight files empty or mere pointers, first "),
        (lambda path: path.write_bytes(b"version https://git-lfs"), "1 weight files empty or mere pointers, first "),
        (lambda path: (path.unlink(), path.symlink_to("/gone")), "1 links to nowhere, first "),
    ],
)
def test_what_a_folder_lacks(model, tmp_path, spoil, problem):
    spoil(model("data/llama") / "model-00002-of-00003.safetensors")
    (entry,) = found(tmp_path)
    assert not entry.complete
    assert entry.problems[0].startswith(problem)


def test_a_root_that_is_a_model_itself(model, tmp_path):
    model("data")
    assert [entry.path for entry in found(tmp_path)] == ["/data"]


def test_the_hub_cache_with_a_download_unfinished(model, tmp_path, monkeypatch):
    cache = tmp_path / "hub"
    model("hub/models--org--whole/snapshots/abc")
    model("hub/models--org--half/snapshots/def")
    (cache / "models--org--half/blobs").mkdir()
    (cache / "models--org--half/blobs/0.incomplete").touch()
    (cache / "models--org--begun/blobs").mkdir(parents=True)
    monkeypatch.setenv("HF_HUB_CACHE", str(cache))
    entries = {entry.hub_id: entry for entry in storage.models(LocalSource(), []).facts["models"]}
    assert entries["org/whole"].complete and entries["org/whole"].revision == "abc"
    assert entries["org/half"].problems == ["1 downloads unfinished"]
    assert entries["org/begun"].problems == ["no snapshot"]


def test_without_any_folder_models_are_not_known(tmp_path):
    assert found(tmp_path) is None


def test_mount_points_with_blanks_and_one_over_another():
    mounts = storage.mount_points("/dev/a / ext4 rw\ntank /my\\040data zfs rw\n/dev/b /my\\040data xfs rw\nshort")
    assert storage.mount_of("/my data/models", mounts) == ("/my data", "xfs")
    assert storage.mount_of("/my", mounts) == ("/", "ext4")
    assert storage.mount_of("/x", {}) == (None, None)


def test_file_systems_of_this_machine(tmp_path):
    systems = storage.file_systems(LocalSource(), [str(tmp_path)]).facts["file_systems"]
    own = next(system for system in systems if system.path == str(tmp_path))
    assert own.purpose == "models" and own.free_bytes > 0 and own.type
