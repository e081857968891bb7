"""Show a run's changes as they come: what is ready, what failed, what is still starting."""

from appliance.cli.output import Step, say, step
from appliance.supervisor.state import RunState


class RunProgress:
    """Feed it every RunState of a run with `update`: it prints each change once."""

    def __init__(self):
        self._step_context = None
        self._step: Step | None = None
        self._told: set[str] = set()

    def __enter__(self) -> "RunProgress":
        return self

    def __exit__(self, *exception) -> None:
        self._close_step()

    def update(self, state: RunState) -> None:
        """Print what is new in `state`."""
        for process in state.processes:
            if process.phase == "serving":
                self._tell(
                    f"{process.name} ready after {process.ready_after_s} s on port {process.port} (pid {process.session})",
                    key=f"{process.name} {process.session} ready",
                )
            if process.last_error and process.phase == "failed":
                self._tell(f"{process.name} {process.last_error}", key=f"{process.name} {process.session} failed")
        if state.phase == "starting":
            waiting = [process.name for process in state.processes if process.phase != "serving"]
            self._show(f"starting {', '.join(waiting)}" if waiting else "asking for a first completion")
            return
        if state.phase == "stopping":
            self._show("stopping")
            return
        self._close_step()
        if state.phase == "serving":
            self._tell(f"serving {state.plan.model.served_name} at {state.endpoint}", key="serving")

    def _tell(self, line: str, key: str) -> None:
        if key not in self._told:
            self._told.add(key)
            say(line)

    def _show(self, text: str) -> None:
        if self._step is None:
            self._step_context = step(text)
            self._step = self._step_context.__enter__()
        else:
            self._step.update(text)

    def _close_step(self) -> None:
        if self._step_context is not None:
            self._step_context.__exit__(None, None, None)
            self._step_context = self._step = None
