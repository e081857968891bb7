import pytest

from appliance.recon.engine.notes import note, remember, remembered


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("APPLIANCE_CACHE_DIR", str(tmp_path))
    return note("kind", "name")


def test_what_is_kept_is_had_again(file):
    remember(file, [("--host", None, ["a"])])
    assert remembered(file, list[tuple[str, str | None, list[str]]]) == [("--host", None, ["a"])]


@pytest.mark.parametrize(
    "spoilt", [b"", b"{", b"\xff", b"null", b'"text"', b'{"a": 1}', b"[1]", b'[["a"], 1]', b"[" * 100_000]
)
def test_what_is_spoilt_is_as_if_it_were_not_there(file, spoilt):
    file.parent.mkdir()
    file.write_bytes(spoilt)
    assert remembered(file, list[list[str]]) is None
    remember(file, [["fresh"]])
    assert remembered(file, list[list[str]]) == [["fresh"]]


def test_a_cache_that_cannot_be_written_costs_time_and_no_facts(file):
    file.parent.write_text("a file where the folder should be")
    remember(file, [["a"]])
    assert remembered(file, list[list[str]]) is None
