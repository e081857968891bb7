"""The probes of `recon engine` that are about SGLang, by the field of the EngineReport that each fills."""

from collections.abc import Callable

from appliance.documents import ForcedSetting, KernelStep
from appliance.engines.sglang.recon import forced as forced_settings
from appliance.engines.sglang.recon import steps as kernel_steps
from appliance.engines.sglang.recon.family import Family
from appliance.engines.sglang.recon.gates import base_evaluator
from appliance.engines.sglang.recon.gates_cached import gates_here
from appliance.engines.sglang.recon.limits import limits
from appliance.engines.sglang.recon.options import options
from appliance.engines.sglang.recon.source import SourceTree
from appliance.engines.sglang.recon.tuned import tuned_devices
from appliance.recon.concurrency import Probe
from appliance.recon.engine.arch import Arch

PACKAGES = [
    "sglang-kernel",
    "sgl-flash-mla",
    "sgl-deep-gemm",
    "sgl-deep-ep",
    "flashinfer-python",
    "flashinfer-jit-cache",
    "nixl-cu13",
    "humming-kernels",
    "tilelang",
]
"""Packages around SGLang that may ship code for GPUs."""

SOURCES = {
    "steps": "the family's table, each row checked against the installed source",
    "limits": "the source of the libraries (ast)",
    "gates": "the installed source (ast)",
    "options": "the server's own parser",
    "forced": "the installed source (ast)",
    "tuned_devices": "names of the table files in the installed package",
}

CHILD_LIMIT_S = 90.0
"""For probes in processes of their own: imports of torch and triton, or hundreds of modules parsed, on busy cores."""
SOURCE_LIMIT_S = 60.0


def probes(family: Callable[[], Family], arch: Callable[[], Arch], wait_s: float) -> dict[str, Probe]:
    """What to find out about the SGLang that is installed. Family and architecture are asked for where they are needed:
    what tells them (a hub, a host far away) may take longer than most of this, and up to `wait_s`."""
    return {
        "steps": Probe(lambda: steps(family(), arch()), SOURCE_LIMIT_S + wait_s),
        "forced": Probe(lambda: forced(family(), arch()), SOURCE_LIMIT_S + wait_s),
        "limits": Probe(lambda: limits(family(), arch().name), SOURCE_LIMIT_S + wait_s),
        "gates": Probe(lambda: gates_here(arch(), CHILD_LIMIT_S - 1), CHILD_LIMIT_S + wait_s),
        "options": Probe(lambda: options(CHILD_LIMIT_S - 1), CHILD_LIMIT_S),
        "tuned_devices": Probe(tuned_devices, SOURCE_LIMIT_S),
    }


def steps(family: Family, arch: Arch) -> list[KernelStep]:
    """The requirements map, without what the toolchain and the binaries say about it."""
    return kernel_steps.steps(family, arch.name, SourceTree.installed("sglang"))


def forced(family: Family, arch: Arch) -> list[ForcedSetting]:
    """What SGLang sets for the family on the architecture."""
    tree = SourceTree.installed("sglang")
    return forced_settings.forced(family, tree, base_evaluator(tree, arch))


def joined(fields: dict, family: Family | None, arch: Arch | None) -> dict:
    """The fields of a report in which each fact sees those that bear on it: steps the tools and the binaries, forced
    settings the defaults of the options."""
    fields = dict(fields)
    if fields.get("steps") and family and arch:
        fields["steps"] = [
            kernel_steps.with_readiness(step, family, arch.name, fields.get("tools"), fields.get("binaries"))
            for step in fields["steps"]
        ]
    if fields.get("forced") and fields.get("options"):
        defaults = {option.flag: option.default for option in fields["options"]}
        fields["forced"] = [
            setting.model_copy(update={"default": defaults.get(setting.name)}) for setting in fields["forced"]
        ]
    return fields
