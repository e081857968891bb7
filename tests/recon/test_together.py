import threading
import time

import pytest

from appliance.documents import EngineReport, MachineReport, ModelReport
from appliance.errors import InputError, ProbeIncomplete
from appliance.recon.absent import Absent
from appliance.recon.together import awaited, together

MACHINE = MachineReport(gpus=[])
ENGINE = EngineReport(version=None, python="3.12", packages={})
MODEL = ModelReport(path="/m", architecture="X", parameters=1, weight_bytes=2)


def back_after(seconds: float, report):
    def call(reports):
        time.sleep(seconds)
        return report

    return call


def raising(error: Exception):
    def call(reports):
        raise error

    return call


def test_three_reports_slowed_on_purpose_take_no_longer_than_the_slowest():
    start = time.monotonic()
    found = together(
        {"machine": back_after(0.6, MACHINE), "engine": back_after(0.8, ENGINE), "model": back_after(0.7, MODEL)}
    )
    assert time.monotonic() - start <= 1.15 * 0.8
    assert (found.machine, found.engine, found.model, found.problems) == (MACHINE, ENGINE, MODEL, {})


def test_a_report_waits_for_a_fact_of_another_and_for_nothing_else():
    def engine(reports):
        name = reports["model"].result().architecture
        return ENGINE.model_copy(update={"family": name})

    found = together({"engine": engine, "model": back_after(0.1, MODEL)})
    assert found.engine.family == "X"
    assert found.machine is None


def test_a_report_that_cannot_be_made_is_null_with_its_reason_and_the_rest_stands():
    found = together({"machine": raising(ProbeIncomplete("no answer")), "engine": back_after(0, ENGINE)})
    assert (found.machine, found.engine) == (None, ENGINE)
    assert found.problems == {"machine": "no answer"}


def test_where_nothing_could_be_concluded_each_reason_is_told():
    calls = {"machine": raising(ProbeIncomplete("late")), "model": raising(ProbeIncomplete("cut"))}
    with pytest.raises(ProbeIncomplete, match="machine: late; model: cut"):
        together(calls)


def test_bad_input_ends_it_at_once_whatever_still_hangs():
    forever = threading.Event()
    start = time.monotonic()
    with pytest.raises(InputError, match="no such model"):
        together({"machine": lambda reports: forever.wait(), "model": raising(InputError("no such model"))})
    assert time.monotonic() - start < 5
    forever.set()


def needs(name: str, limit_s: float):
    """A report that has what it learned of another one, or why it learned nothing."""

    def call(reports):
        try:
            return ENGINE.model_copy(update={"family": awaited(reports, name, limit_s).architecture})
        except Absent as problem:
            return ENGINE.model_copy(update={"family": f"absent: {problem}"})

    return call


def test_a_fact_of_a_report_that_fails_is_absent_with_its_reason():
    found = together({"engine": needs("model", 5), "model": raising(ProbeIncomplete("the hub answered 500"))})
    assert found.engine.family == "absent: the model is not known: the hub answered 500"


def test_a_fact_of_a_report_that_never_comes_is_absent_with_its_reason():
    found = together({"engine": needs("model", 0.2), "model": back_after(1, MODEL)})
    assert found.engine.family == "absent: the model was not back within 0.2 s"


def test_a_fact_of_a_report_that_comes_is_had():
    assert together({"engine": needs("model", 5), "model": back_after(0.1, MODEL)}).engine.family == "X"
