import importlib
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from appliance.documents import KernelBench, KernelTime

KERNELS = Path(__file__).parents[3] / "pkgs" / "kernels"


def test_written_and_read_it_is_the_same(bench, tmp_path):
    bench.write(tmp_path / "bench.json")
    assert KernelBench.read(tmp_path / "bench.json") == bench


@pytest.mark.parametrize("value", [{}, {"failed": "x", "us": None, "captured": None}])
def test_a_time_or_a_reason(value):
    if value:
        assert KernelTime.model_validate(value).failed == "x"
    else:
        with pytest.raises(ValidationError, match="expected either us or failed"):
            KernelTime.model_validate(value)


def test_what_the_benchmark_writes_is_the_document(monkeypatch, tmp_path):
    """The opening and a case as `appliance_kernels.bench` makes them, with a stand-in for the GPU and its clock."""
    torch = pytest.importorskip("torch")
    monkeypatch.syspath_prepend(KERNELS)
    main, record, operation, timing = (
        importlib.import_module(f"appliance_kernels.bench.{name}")
        for name in ("__main__", "record", "operation", "timing")
    )
    gpu = SimpleNamespace(name="stand-in", major=9, minor=0, multi_processor_count=132)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: gpu)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    clock = SimpleNamespace(
        repetitions=50, copy_bandwidth=lambda: 4e12, empty_graph=lambda: timing.Times.of([3.0] * 20),
        time=lambda run, graph=True: timing.Times.of([5.0 + n for n in range(20)]),
    )  # fmt: skip
    monkeypatch.setattr(main.Stopwatch, "once", lambda run: 1e-5)
    (tmp_path / "library").write_bytes(b"")

    def broken():
        raise RuntimeError("no kernel image\nsecond line")

    document = record.opening("command", tmp_path / "library", clock)
    case = operation.Case({"batch": 1}, 100, 1, 132, {"appliance": lambda: 0, "other": broken}, lambda result: 1e-3)
    results = main.timed(case, clock)
    document["cases"].append({
        "operation": "x", "shape": case.shape, "bytes": 100, "blocks": 1, "blocks_at_once": 132, "kernels": results,
    })  # fmt: skip
    [kept] = KernelBench.model_validate(document).cases
    assert kept.kernels["appliance"].us.median == 14.5 and kept.kernels["appliance"].captured
    assert kept.kernels["other"].failed == "RuntimeError: no kernel image"
    assert clock.repetitions == 50
