import io

from rich.console import Console

from appliance.bench.kernels.table import show


def shown(bench, width: int) -> list[str]:
    text = io.StringIO()
    show(Console(file=text, width=width, highlight=False, markup=False, soft_wrap=True), bench)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def test_every_number_is_whole_on_a_narrow_terminal(bench):
    lines = shown(bench, 40)
    [row] = [line.split() for line in lines if line.split()[:2] == ["1", "1024"]]
    assert row == ["1", "1024", "132/132", "5.0", "4.5-6.0", "1.0e-03", "1.00", "50.0", "(10.0)", "7.5*", "(1.5)"]


def test_what_did_not_run_is_said(bench):
    lines = shown(bench, 100)
    assert "  *: could not be captured in a graph; called from Python" in lines
    assert "  without DeepGEMM: needs sm_90" in lines
    assert "  slow at batch=64 context=1024: OutOfMemoryError: too large" in lines
    [row] = [line.split() for line in lines if line.split()[:2] == ["64", "1024"]]
    assert row[-1] == "-"


def test_gpu_versions_and_bandwidth_stand_above(bench):
    head = "\n".join(shown(bench, 100)[:3])
    assert "NVIDIA H200, 132 SMs" in head and "torch 2.11.0" in head and "copy 4.00 TB/s" in head
    assert "sglang" not in head, "what is not installed has no version"
