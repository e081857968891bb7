"""Whether a server runs our kernels as the plan says.

SGLang only logs a plugin that fails and serves on without it. So the plugin (pkgs/kernels, appliance_kernels.engine)
reports on itself in /server_info, and that report is compared here.
"""

from importlib.metadata import PackageNotFoundError, version

from appliance.documents import Worker

SWITCH = "APPLIANCE_KERNELS"
"""Variable of a worker. on: the kernels must be active; off: stock kernels; not set: on where they are installed."""
FIELD = "appliance_kernels"
PACKAGE = "appliance-kernels"


def is_installed() -> bool:
    """Whether the kernels are in this environment, which is the engine's too: a worker runs this interpreter."""
    try:
        return bool(version(PACKAGE))
    except PackageNotFoundError:
        return False


def mismatches(worker: Worker, server_info: dict) -> list[str]:
    """What the server reports of the kernels against the plan's variable, one line a scheduler that differs."""
    planned = worker.env.get(SWITCH)
    reported = server_info.get("internal_states")
    states = [state for state in reported if isinstance(state, dict)] if isinstance(reported, list) else []
    return [line for state in states or [{}] if (line := mismatch(planned, state.get(FIELD)))]


def mismatch(planned: str | None, reported: dict | None) -> str | None:
    """The line for one scheduler's report (None: it has none), or None where it is as planned."""
    if reported is None:
        if planned == "on":
            return f"{SWITCH} is on, but the server has no such plugin; expected {PACKAGE} beside the engine"
        if planned is None and is_installed():
            return f"{PACKAGE} is installed, but the server has no such plugin: see its log, or plan {SWITCH}=off"
        return None
    state = reported.get("state")
    if state == ("off" if planned == "off" else "active"):
        return None
    reason = f" ({reported['reason']})" if reported.get("reason") else ""
    return f"{SWITCH} is planned {planned or 'on, as it is not set'}; the server reports its kernels {state}{reason}"
