"""Show a run's changes as they come: what is ready, what failed, what is still starting."""

from appliance.cli.output import Step, say
from appliance.documents import RunState


class RunProgress:
    """Feed it every RunState of a run with `update`: each change is printed once, the present in `step`."""

    def __init__(self, step: Step):
        self._step = step
        self._told: set[str] = set()

    def update(self, state: RunState) -> None:
        """Print what is new in `state`."""
        for process in state.processes:
            if process.phase == "serving" and state.phase in ("starting", "serving"):
                ready = f"{process.name} ready after {process.ready_after_s} s on port {process.port}"
                self._tell(f"{ready} (pid {process.session})", key=f"{process.session} ready")
            if process.last_error and process.phase == "failed":
                self._tell(f"{process.name} {process.last_error}", key=f"{process.session} failed")
        if state.phase == "starting":
            waiting = [process.name for process in state.processes if process.phase != "serving"]
            self._step.update(f"starting {', '.join(waiting)}" if waiting else "asking for a first completion")
        elif state.phase == "stopping":
            self._step.update("stopping")
        elif state.phase == "serving":
            self._tell(f"serving {state.plan.model.served_name} at {state.endpoint}", key="serving")
            self._step.update("serving")

    def _tell(self, line: str, key: str) -> None:
        if key not in self._told:
            self._told.add(key)
            say(line)
