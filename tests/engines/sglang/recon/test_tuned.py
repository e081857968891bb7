import pytest

from appliance.engines.sglang.recon import tuned
from appliance.engines.sglang.recon.source import SourceTree
from appliance.recon.engine import installed


def test_tables_count_by_device_whatever_else_is_in_their_name(tmp_path, monkeypatch):
    for name in (
        "E=8,N=4096,device_name=NVIDIA_H200.json",
        "E=8,N=4096,device_name=NVIDIA_H200_down.json",
        "N=1,K=2,device_name=NVIDIA_H20-3e,dtype=fp8_w8a8,block_shape=[128, 128].json",
        "notes.json",
    ):
        (tmp_path / name).touch()
    monkeypatch.setattr(tuned.SourceTree, "installed", lambda package: SourceTree(tmp_path))
    assert tuned.tuned_devices() == {"NVIDIA H20-3e": 1, "NVIDIA H200": 2}


@pytest.mark.skipif(installed("sglang") != "0.5.23", reason="counts of another release")
def test_the_workstation_edition_has_no_table_in_the_installed_release():
    found = tuned.tuned_devices()
    assert found["NVIDIA H200"] > 100 and "NVIDIA RTX PRO 6000 Blackwell Server Edition" in found
    assert "NVIDIA RTX PRO 6000 Blackwell Workstation Edition" not in found
