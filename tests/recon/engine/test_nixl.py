import time

import pytest

from appliance.recon.engine.nixl import NoNixl, nixl

API = """
import os, sys, time

class nixl_agent_config:
    def __init__(self, backends): pass

class nixl_agent:
    def __init__(self, name, config): pass
    def get_plugin_list(self): return ["CRASHES", "FAILS", "GOOD", "HANGS", "LATER"]
    def create_backend(self, name):
        print("a plugin talks on standard output")
        if name == "CRASHES": os.abort()
        if name == "HANGS": time.sleep(60)
        if name == "FAILS": raise RuntimeError("no such device")
"""


def fake(tmp_path, monkeypatch, api: str) -> None:
    (tmp_path / "nixl").mkdir()
    (tmp_path / "nixl" / "__init__.py").write_text("")
    (tmp_path / "nixl" / "_api.py").write_text(api)
    before = __import__("os").environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{before}")


def test_ucx_makes_a_backend_on_a_machine_without_a_gpu():
    backends, modules = nixl(60)
    found = {backend.name: backend for backend in backends}
    assert found["UCX"].loads and found["UCX"].reason is None
    assert not found["OBJ"].loads and found["OBJ"].reason
    assert {module.name for module in modules} >= {"cma", "cuda", "ib"}
    assert all(module.loads or module.reason for module in modules)


def test_a_plugin_that_crashes_or_hangs_is_one_that_does_not_load(tmp_path, monkeypatch):
    fake(tmp_path, monkeypatch, API)
    start = time.monotonic()
    found = {backend.name: backend for backend in nixl(4)[0]}
    assert time.monotonic() - start < 8
    assert found["GOOD"].loads
    assert found["CRASHES"].reason == "its process ended with -6"
    assert found["FAILS"].reason == "no such device"
    assert found["HANGS"].reason == "its process did not come back in time"
    assert found["LATER"].reason == "not tried: no time was left"


@pytest.mark.parametrize(
    "api, reason", [("raise ImportError('no libucp')", "no libucp"), ("import os; os._exit(9)", "with 9")]
)
def test_without_an_agent_the_reason_is_told(tmp_path, monkeypatch, api, reason):
    fake(tmp_path, monkeypatch, api)
    with pytest.raises(NoNixl, match=reason):
        nixl(20)
