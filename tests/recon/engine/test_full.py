import time

import pytest

from appliance.documents import EngineReport
from appliance.engines.sglang.recon.family import load
from appliance.recon.absent import Absent
from appliance.recon.concurrency import Probe
from appliance.recon.engine.arch import Arch
from appliance.recon.engine.full import full_report, probes


def sm_120() -> Arch:
    return Arch(12, 0)


def no_arch() -> Arch:
    raise Absent("the machine is not known")


@pytest.fixture
def v4():
    return lambda: load("deepseek_v4")


def slowed(seconds: float, value: object = None) -> Probe:
    def call():
        time.sleep(seconds)
        return value

    return Probe(call, 5.0)


def test_probes_slowed_on_purpose_take_no_longer_than_the_slowest(v4):
    among = {name: slowed(0.8 - 0.05 * n) for n, name in enumerate(probes(v4, sm_120)) if name != "nixl"}
    start = time.monotonic()
    full_report(v4, sm_120, among={**among, "nixl": slowed(0.5, ([], []))})
    assert time.monotonic() - start <= 1.15 * 0.8


def test_a_probe_that_fails_or_hangs_is_null_with_its_reason_and_the_rest_stands(v4):
    real = probes(v4, sm_120)
    report = full_report(
        v4,
        sm_120,
        among={
            "pins": real["pins"],
            "steps": real["steps"],
            "tools": Probe(lambda: time.sleep(30), 0.2),
            "binaries": Probe(lambda: 1 / 0, 5),
            "nixl": Probe(lambda: {}["gone"], 5),
        },
    )
    assert report.tools is None and report.sources["tools"] == "absent: not back within 0.2 s"
    assert report.sources["binaries"] == "absent: ZeroDivisionError: division by zero"
    assert report.transfer_backends is None and "KeyError" in report.sources["transfer_backends"]
    assert report.pins and report.steps
    assert {step.can_compile for step in report.steps} == {None}
    assert report.version and (report.arch, report.family) == ("sm_120", "deepseek_v4")
    assert EngineReport.parse(report.to_json(), where="report") == report


def test_without_an_architecture_steps_and_gates_have_a_reason(v4):
    real = probes(v4, no_arch)
    report = full_report(v4, no_arch, among={name: real[name] for name in ("steps", "gates", "forced", "limits")})
    for name in ("steps", "gates", "forced", "limits"):
        assert getattr(report, name) is None
        assert report.sources[name] == "absent: the machine is not known"
    assert (report.arch, report.family) == (None, "deepseek_v4")


def test_probes_that_need_a_fact_of_another_report_have_the_time_for_it_besides_their_own(v4):
    waiting = {name: probe.limit_s for name, probe in probes(v4, sm_120, wait_s=100).items()}
    at_once = {name: probe.limit_s for name, probe in probes(v4, sm_120).items()}
    assert {name for name in waiting if waiting[name] > at_once[name]} == {"steps", "forced", "limits", "gates"}


def test_a_saved_report_of_before_is_still_read():
    text = '{"kind": "EngineReport", "version": null, "python": "3.11.7", "packages": {}}'
    assert EngineReport.parse(text, where="old").steps is None
