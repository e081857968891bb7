import pytest

from appliance.engines.sglang.recon import options as module
from appliance.engines.sglang.recon.options import options, places
from appliance.engines.sglang.recon.source import SourceTree, Unknown


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("APPLIANCE_CACHE_DIR", str(tmp_path))


def test_options_come_from_the_servers_parser_and_are_asked_for_once(monkeypatch):
    found = {option.flag: option for option in options(120)}
    assert len(found) > 500
    backend = found["--disaggregation-transfer-backend"]
    assert backend.default == "mooncake" and "nixl" in backend.choices
    assert backend.where.startswith("sglang/srt/arg_groups/fields/disagg.py:")
    assert found["--fp8-gemm-backend"].default == "auto"
    monkeypatch.setattr(module, "CHILD", "no.such.module")
    assert {option.flag: option for option in options(120)} == found


def test_a_note_that_is_not_readable_is_made_anew(monkeypatch):
    module.record().parent.mkdir(parents=True)
    module.record().write_text("{")
    monkeypatch.setattr(module, "asked", lambda limit_s: [["--x", None, None]])
    assert [option.flag for option in options(1)] == ["--x"]


def test_a_parser_that_cannot_be_made_or_takes_too_long_is_no_table(monkeypatch):
    with pytest.raises(TimeoutError, match="not back within 0.05 s"):
        options(0.05)
    monkeypatch.setattr(module, "CHILD", "no.such.module")
    with pytest.raises(Unknown, match="its parser cannot be made: .*No module named"):
        options(30)


def test_places_are_found_without_an_import():
    found = places(SourceTree.installed("sglang"))
    assert found["--page-size"].startswith("sglang/srt/arg_groups/fields/")
    assert "--fp8-gemm-runner-backend" not in found
