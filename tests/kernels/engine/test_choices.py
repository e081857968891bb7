"""The calibration file: keyed, whole, shared by processes, and never a reason not to serve."""

import json
import multiprocessing

import pytest
from appliance_kernels.engine.choices import Choices, folder, key_of

KEY = {"gpu": "NVIDIA H200", "library_sha256": "0" * 64, "torch": "2.14.1", "sglang": "0.5.23"}
NAMES = ("appliance", "stock", *(f"from {n}" for n in range(4)))
TIMES = {"appliance": [10.0], "stock": [20.0]}


def test_what_is_kept_is_found_by_another_process(tmp_path):
    assert Choices(tmp_path, KEY, NAMES).get("a") is None
    assert Choices(tmp_path, KEY, NAMES).keep("a", "appliance", TIMES) == "appliance"
    assert Choices(tmp_path, KEY, NAMES).get("a") == "appliance"
    entry = json.loads(Choices(tmp_path, KEY, NAMES).path.read_text())["choices"]["a"]
    assert entry["microseconds"] == TIMES and entry["date"]


@pytest.mark.parametrize("part", KEY)
def test_another_gpu_library_or_version_is_another_file(tmp_path, part):
    Choices(tmp_path, KEY, NAMES).keep("a", "appliance", TIMES)
    other = Choices(tmp_path, KEY | {part: "other"}, NAMES)
    assert other.get("a") is None
    other.keep("a", "stock", TIMES)
    assert Choices(tmp_path, KEY, NAMES).get("a") == "appliance"


def test_another_entry_points_choices_stay_in_the_file(tmp_path):
    one, other = Choices(tmp_path, KEY, ["triton"]), Choices(tmp_path, KEY, ["stock"])
    one.keep("a", "triton", {})
    other.keep("b", "stock", {})
    assert one.get("a") == "triton" and other.get("b") == "stock"
    assert other.get("a") is None, "a kernel that this entry point does not have"
    assert other.keep("a", "stock", {}) == "stock" == other.get("a")


def test_the_first_to_keep_decides(tmp_path):
    first, second = Choices(tmp_path, KEY, NAMES), Choices(tmp_path, KEY, NAMES)
    assert first.keep("a", "appliance", TIMES) == "appliance"
    assert second.keep("a", "stock", TIMES) == "appliance"
    assert second.keep("b", "stock", TIMES) == "stock"
    assert first.get("a") == "appliance" and first.get("b") == "stock"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "\x00", '{"choices": {}}', '{"key": {}, "choices": {"a": {"choice": "stock"}}}',
     json.dumps({"key": KEY, "choices": {"a": "stock"}}), json.dumps({"key": KEY, "choices": {"a": {}}}),
     json.dumps({"key": KEY, "choices": []})],
)  # fmt: skip
def test_a_corrupt_file_costs_a_measurement(tmp_path, text, caplog):
    choices = Choices(tmp_path, KEY, NAMES)
    choices.path.write_text(text)
    assert choices.get("a") is None
    assert "measuring anew" in caplog.text
    assert choices.keep("a", "appliance", TIMES) == "appliance"
    assert choices.get("a") == "appliance"


def test_not_utf8_is_corrupt_too(tmp_path):
    choices = Choices(tmp_path, KEY, NAMES)
    choices.path.write_bytes(b"\xff\xfe{}")
    assert choices.get("a") is None


def test_a_folder_that_cannot_be_written_costs_the_memory_only(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    choices = Choices(tmp_path / "file" / "below", KEY, NAMES)
    assert choices.keep("a", "appliance", TIMES) == "appliance"
    assert "is not written" in caplog.text


def keep_many(folder, process, buckets):
    choices = Choices(folder, KEY, NAMES)
    return [choices.keep(f"bucket {n}", f"from {process}", TIMES) for n in range(buckets)]


def test_processes_at_once_lose_nothing_and_agree(tmp_path):
    processes, buckets = 4, 25
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        answers = pool.starmap(keep_many, [(tmp_path, p, buckets) for p in range(processes)])
    assert all(answer == answers[0] for answer in answers)
    assert [Choices(tmp_path, KEY, NAMES).get(f"bucket {n}") for n in range(buckets)] == answers[0]
    left = {path.suffix for path in tmp_path.iterdir()}
    assert left == {".json", ".lock"}


def test_the_key_names_gpu_library_and_versions(tmp_path):
    library = tmp_path / "library.so"
    library.write_bytes(b"one")
    key = key_of("NVIDIA H200", library)
    assert key["gpu"] == "NVIDIA H200" and len(key["library_sha256"]) == 64 and key["torch"]
    library.write_bytes(b"two")
    assert key_of("NVIDIA H200", library)["library_sha256"] != key["library_sha256"]
    assert {"triton", "flashinfer-python", "sglang"} < set(key)


def test_the_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("APPLIANCE_KERNELS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert folder() == tmp_path / "appliance" / "kernels"
    monkeypatch.setenv("APPLIANCE_KERNELS_CACHE", str(tmp_path / "here"))
    assert folder() == tmp_path / "here"
