"""Whether a running SGLang server is the planned one: its own report against the plan, argument by argument."""

from appliance.documents import Plan, Worker
from appliance.engines.sglang import kernels
from appliance.engines.sglang.command import command


def mismatches(plan: Plan, worker: Worker, server_info: dict) -> list[str]:
    """What the server's /server_info says differently from the plan, one line each; empty if it is the planned one."""
    differences = []
    if server_info.get("version") != plan.engine.version:
        differences.append(f"version is {server_info.get('version')}, planned {plan.engine.version}")
    for flag, planned in flags(command(plan, worker)):
        field = flag.removeprefix("--").replace("-", "_")
        if field not in server_info:
            differences.append(f"{flag} is not reported by the server, planned {planned}")
        elif not same(planned, server_info[field]):
            differences.append(f"{flag} is {server_info[field]}, planned {planned}")
    return differences + kernels.mismatches(worker, server_info)


def flags(words: list[str]) -> list[tuple[str, str]]:
    """The options of a server's argument vector as (flag, value); a flag without a value counts as "True"."""
    pairs: list[tuple[str, str]] = []
    for word in words[words.index("sglang.launch_server") + 1 :]:
        if word.startswith("--"):
            flag, equals, value = word.partition("=")
            pairs.append((flag, value if equals else "True"))
        elif pairs:
            flag, value = pairs[-1]
            pairs[-1] = (flag, word if value == "True" else f"{value} {word}")
    return pairs


def same(planned: str, reported: object) -> bool:
    """Whether a planned word and a reported JSON value are the same setting."""
    if isinstance(reported, list):
        return planned.split() == [str(value) for value in reported]
    if isinstance(reported, bool):
        return planned == str(reported)
    if isinstance(reported, int | float):
        try:
            return float(planned) == float(reported)
        except ValueError:
            return False
    return planned == str(reported)
