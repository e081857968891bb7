"""The plugin in the pinned engine's real registry: registered, applied, called through, switched off, failing."""

import inspect
import os
import pkgutil
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from types import ModuleType, SimpleNamespace

import pytest
import torch
from appliance_kernels import library
from appliance_kernels.engine import decode_entry, plugin
from appliance_kernels.engine.choices import Choices

from appliance.engines.sglang import kernels as asserted
from appliance.engines.sglang.cpu import STANDINS
from tests.kernels.conftest import ROOT
from tests.kernels.engine.conftest import flash_mla_sm120

hook_registry = pytest.importorskip("sglang.srt.plugins.hook_registry")
ENTRY = "flash_mla_with_kvcache_sm120"
# Not as a name of this module: applying a hook replaces the original in every module that holds it.
STOCK = [getattr(flash_mla_sm120, ENTRY)]


@pytest.fixture(autouse=True)
def clean_engine(monkeypatch, tmp_path):
    """The engine as it was, after each test."""
    monkeypatch.delenv(plugin.SWITCH, raising=False)
    monkeypatch.setenv("APPLIANCE_KERNELS_CACHE", str(tmp_path))
    yield
    for target in hook_registry.HookRegistry._patched:
        owner, name = target.rsplit(".", 1)
        setattr(pkgutil.resolve_name(owner), name, pkgutil.resolve_name(target).__wrapped__)
    hook_registry.HookRegistry.reset()


@pytest.fixture
def standin_library(monkeypatch, tmp_path):
    """In place of the built library: a file of bytes that is never loaded."""
    file = tmp_path / "stand-in-for-libappliance_kernels.so"
    file.write_bytes(b"stand-in")
    monkeypatch.setenv(library.PATH_VARIABLE, str(file))
    monkeypatch.setattr(library, "load", lambda: None)
    return file


def start(monkeypatch, **environment) -> plugin.Report:
    """What SGLang's load_plugins does with an entry point, its errors included."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    report = plugin.register()
    hook_registry.HookRegistry.apply_hooks()
    return report


def server_info(report) -> dict:
    """/server_info as far as the appliance reads it."""
    return {"internal_states": [{"appliance_kernels": report.as_dict()}]}


def worker(**env):
    return SimpleNamespace(env=env)


def give_times(report, monkeypatch, tmp_path, **times):
    """Given times in place of the stopwatch, which needs a GPU; the CPU has no GPU name either."""
    dispatch = report.dispatches[plugin.DECODE]
    dispatch._measure = lambda kernels, calls, device: {name: [time] for name, time in times.items()}
    dispatch._open_choices = lambda entry, device: Choices(tmp_path, {"gpu": "none"}, entry.NAMES)


def test_the_entry_point_that_sglang_finds_is_the_plugin():
    group = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["sglang.srt.plugins"]
    [(name, value)] = group.items()
    assert EntryPoint(name, value, "sglang.srt.plugins").load() is plugin.register


def test_the_kernel_is_called_in_place_of_stock_and_says_the_same(
    monkeypatch, tmp_path, standin_library, standin_kernel, stock_on_cpu, make_call
):
    call = make_call(batch=3)
    want, _ = STOCK[0](**call)
    report = start(monkeypatch)
    give_times(report, monkeypatch, tmp_path, appliance=1.0, stock=2.0)
    out, lse = getattr(flash_mla_sm120, ENTRY)(**call)
    assert len(standin_kernel) == 1
    assert out.shape == want.shape and out.dtype == want.dtype
    torch.testing.assert_close(out.float(), want.float(), atol=2e-2, rtol=2e-2)


def test_where_stock_is_chosen_the_original_runs(
    monkeypatch, tmp_path, standin_library, standin_kernel, stock_on_cpu, make_call
):
    call = make_call()
    report = start(monkeypatch)
    give_times(report, monkeypatch, tmp_path, appliance=2.0, stock=1.0)
    got, want = getattr(flash_mla_sm120, ENTRY)(**call)[0], STOCK[0](**call)[0]
    assert torch.equal(got, want) and not standin_kernel


def test_modules_that_imported_the_entry_point_before_are_served_too(monkeypatch, standin_library):
    module = ModuleType("imported_before")
    setattr(module, ENTRY, STOCK[0])
    monkeypatch.setitem(sys.modules, "imported_before", module)
    start(monkeypatch)
    assert getattr(module, ENTRY) is getattr(flash_mla_sm120, ENTRY) is not STOCK[0]


def test_sglangs_backends_are_called_in_their_own_order(make_call):
    """By the names of the parameters of the pinned engine: a reordered signature fails here."""
    from sglang.kernels.ops.attention.flash_mla_sm120_triton import flash_mla_sparse_decode_triton

    call = make_call()
    expected = dict(call)
    expected["extra_indices"] = expected.pop("extra_indices_in_kvcache")
    for backend in (flash_mla_sm120._flash_mla_flashinfer, flash_mla_sparse_decode_triton):
        bound = inspect.signature(backend).bind(*decode_entry.in_order(call))
        assert {name: value is expected[name] for name, value in bound.arguments.items()} == dict.fromkeys(
            expected, True
        )


def test_the_appliance_agrees_with_an_active_plugin(monkeypatch, standin_library):
    info = server_info(start(monkeypatch))
    assert info["internal_states"][0]["appliance_kernels"]["library"] == str(standin_library)
    assert asserted.mismatches(worker(APPLIANCE_KERNELS="on"), info) == []
    assert asserted.mismatches(worker(), info) == []
    assert asserted.mismatches(worker(APPLIANCE_KERNELS="off"), info) == [
        "APPLIANCE_KERNELS is planned off; the server reports its kernels active"
    ]


SCHEDULER = """
import logging
logging.basicConfig(level=logging.INFO, format="%(message)s")
from types import SimpleNamespace
from appliance_kernels import library
from appliance_kernels.engine import plugin
library.load = lambda: None  # stand-in: the built library is a file of bytes here
plugin.register()
from sglang.srt.plugins.hook_registry import HookRegistry
HookRegistry.apply_hooks()
from sglang.srt.managers.scheduler_components.internal_state import SchedulerInternalStateController as Controller
from sglang.srt.managers.scheduler_components import internal_state
controller = Controller(SimpleNamespace(), record_step_time=False)
internal_state.get_context = lambda: SimpleNamespace(resolved_server_args_dict=dict)
for name in [name for name in dir(Controller) if name.startswith("_add_")]:
    setattr(controller, name, lambda state: None)  # parts that ask a whole scheduler
print("STATE", controller.get_internal_state(None).internal_state["appliance_kernels"]["state"])
"""


def test_the_engines_scheduler_reports_and_logs_it_once(standin_library):
    """In a process of its own, with the CPU engine's stand-ins: SGLang's scheduler imports what has no CPU build."""
    path = os.pathsep.join([str(STANDINS), str(ROOT)])
    env = os.environ | {"PYTHONPATH": path, "SGLANG_USE_CPU_ENGINE": "1", "SGLANG_PLUGINS": "none"}
    done = subprocess.run([sys.executable, "-c", SCHEDULER], capture_output=True, text=True, env=env, timeout=120)
    assert "STATE active" in done.stdout, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("appliance kernels: active")]
    assert lines == [lines[0]] and f"; library {standin_library}, sha256 " in lines[0]
    assert lines[0].startswith("appliance kernels: active: flash_mla_with_kvcache_sm120, ")
    assert "fp8_paged_mqa_logits_torch_sm120" in lines[0] and "topk_transform_paged" not in lines[0]


def test_kernels_on_trial_are_put_in_place_only_where_that_is_asked_for(monkeypatch, standin_library):
    assert not any("topk" in target for target in plugin.register().dispatches)
    monkeypatch.setenv("APPLIANCE_KERNELS_TRIAL", "on")
    assert [target.rsplit(".", 1)[1] for target in plugin.register().dispatches if "topk" in target] == [
        "topk_transform_paged", "topk_transform_paged_v2",
    ]  # fmt: skip


def test_switched_off_the_engine_is_stock(monkeypatch, standin_library):
    report = start(monkeypatch, APPLIANCE_KERNELS="off")
    assert getattr(flash_mla_sm120, ENTRY) is STOCK[0]
    info = server_info(report)
    assert asserted.mismatches(worker(APPLIANCE_KERNELS="off"), info) == []
    [line] = asserted.mismatches(worker(APPLIANCE_KERNELS="on"), info)
    assert line == "APPLIANCE_KERNELS is planned on; the server reports its kernels off (APPLIANCE_KERNELS=off)"


def test_without_a_library_the_assertion_fails_in_words(monkeypatch, tmp_path):
    library.load.cache_clear()
    report = start(monkeypatch, APPLIANCE_KERNELS_LIBRARY=str(tmp_path / "absent.so"))
    assert getattr(flash_mla_sm120, ENTRY) is STOCK[0]
    [line] = asserted.mismatches(worker(APPLIANCE_KERNELS="on"), server_info(report))
    assert "the server reports its kernels failed (no kernel library at" in line and "absent.so" in line
    assert asserted.mismatches(worker(), server_info(report)), "also where the plan does not name them"


def test_a_file_that_is_no_library_fails_in_words(monkeypatch, tmp_path):
    library.load.cache_clear()
    (tmp_path / "text.so").write_text("not a library")
    report = start(monkeypatch, APPLIANCE_KERNELS_LIBRARY=str(tmp_path / "text.so"))
    [line] = asserted.mismatches(worker(), server_info(report))
    assert "failed" in line and "text.so" in line


def test_a_library_of_another_version_fails_in_words(monkeypatch):
    """Torch's own library stands in for an old one: it can be loaded, and lacks the functions."""
    library.load.cache_clear()
    report = start(monkeypatch, APPLIANCE_KERNELS_LIBRARY=torch._C.__file__)
    [line] = asserted.mismatches(worker(), server_info(report))
    assert "is of another version than this package" in line


def test_another_value_of_the_switch_is_refused(monkeypatch, standin_library):
    report = start(monkeypatch, APPLIANCE_KERNELS="yes")
    assert getattr(flash_mla_sm120, ENTRY) is STOCK[0]
    [line] = asserted.mismatches(worker(APPLIANCE_KERNELS="yes"), server_info(report))
    assert "APPLIANCE_KERNELS is 'yes'; expected on or off" in line


def test_a_hook_that_sglang_did_not_apply_is_not_called_active(monkeypatch, standin_library):
    report = plugin.register()  # and no apply_hooks
    assert report.as_dict()["state"] == "failed" and "did not apply the hook" in report.as_dict()["reason"]
