"""All that can be found out about the installed engine, its probes side by side."""

from collections.abc import Callable

from appliance.documents import EngineReport
from appliance.engines.sglang.recon import probes as sglang
from appliance.engines.sglang.recon.family import Family
from appliance.recon.absent import Absent
from appliance.recon.concurrency import Once, Outcome, Probe, Value, side_by_side
from appliance.recon.engine.arch import Arch
from appliance.recon.engine.binaries import binaries, judged
from appliance.recon.engine.nixl import nixl
from appliance.recon.engine.pins import pins
from appliance.recon.engine.toolchain import toolchain
from appliance.recon.engine.versions import engine_report

NIXL_LIMIT_S = 45.0
BINARIES_LIMIT_S = 180.0
SOURCES = {
    "pins": "Requires-Dist of the engine's metadata",
    "tools": "CUDA_HOME, PATH, /usr/local/cuda",
    "binaries": "cuobjdump, remembered by the file's hash",
    "nixl": "backends made in a process of their own",
}


def probes(family: Callable[[], Family], arch: Callable[[], Arch], wait_s: float = 0.0) -> dict[str, Probe]:
    """Every probe by the field that it fills; "nixl" fills two."""
    return {
        "pins": Probe(lambda: pins("sglang"), 20.0),
        "tools": Probe(toolchain, 40.0),
        "binaries": Probe(lambda: binaries(sglang.PACKAGES), BINARIES_LIMIT_S),
        "nixl": Probe(lambda: nixl(NIXL_LIMIT_S - 1), NIXL_LIMIT_S),
    } | sglang.probes(family, arch, wait_s)


def full_report(
    family: Callable[[], Family],
    arch: Callable[[], Arch],
    done: Callable[[str, Outcome], None] = lambda name, outcome: None,
    among: dict[str, Probe] | None = None,
    wait_s: float = 0.0,
) -> EngineReport:
    """Report the engine for a family and an architecture. A probe that fails or is late leaves a null and its reason.

    Both are called when a probe needs them, once each; they may wait up to `wait_s`, and raise Absent. `among` takes
    the place of the probes; `done` is called for each as it ends.
    """
    family, arch = Once(family), Once(arch)
    outcomes = side_by_side(probes(family, arch, wait_s) if among is None else among, done)
    its_family, its_arch = had(family), had(arch)
    fields: dict[str, object] = {}
    sources: dict[str, str] = {}
    for name, outcome in outcomes.items():
        parts = ["transfer_backends", "transport_modules"] if name == "nixl" else [name]
        values = outcome.value if name == "nixl" and outcome.problem is None else [outcome.value] * len(parts)
        for part, value in zip(parts, values, strict=True):
            fields[part] = value
            known = {**SOURCES, **sglang.SOURCES}
            sources[part] = f"absent: {outcome.problem}" if outcome.problem else known.get(name, name)
    if its_arch and fields.get("binaries"):
        fields["binaries"] = [judged(binary, its_arch) for binary in fields["binaries"]]
    if its_family and fields.get("steps"):
        sources["steps"] += f" (rows written for {its_family.written_for})"
    quick = engine_report()
    return quick.model_copy(
        update={
            "arch": its_arch.name if its_arch else None,
            "family": its_family.name if its_family else None,
            **sglang.joined(fields, its_family, its_arch),
            "sources": quick.sources | sources,
        }
    )


def had(call: Once[Value]) -> Value | None:
    """What a call comes back with; None where that is absent."""
    try:
        return call()
    except Absent:
        return None
