from appliance.cli.run_progress import RunProgress
from appliance.documents import ProcessState
from tests.supervisor.test_state import run_state


class Lines:
    def __init__(self):
        self.lines = []

    def update(self, text, detail=""):
        self.lines.append(text)


def test_each_change_is_told_once(make_plan, capsys):
    plan, step = make_plan("single"), Lines()
    shown = RunProgress(step)
    starting = ProcessState(name="single", phase="starting", session=7, port=1)
    serving = starting.model_copy(update={"phase": "serving", "ready_after_s": 3.0})
    failed = serving.model_copy(update={"phase": "failed", "last_error": "was ended by SIGKILL"})
    for phase, process in [("starting", starting), ("starting", serving), ("serving", serving), ("serving", serving)]:
        shown.update(run_state(plan, phase=phase, processes=[process]))
    for _ in range(2):
        shown.update(run_state(plan, phase="stopping", processes=[failed]))
    assert capsys.readouterr().err.splitlines() == [
        "single ready after 3.0 s on port 1 (pid 7)",
        f"serving demo at {plan.endpoint()}",
        "single was ended by SIGKILL",
    ]
    assert step.lines[:2] == ["starting single", "asking for a first completion"]
    assert step.lines[-1] == "stopping"
