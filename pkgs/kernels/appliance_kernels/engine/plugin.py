"""SGLang plugin (entry point `sglang.srt.plugins`): the kernels in place of the engine's own, and a report of it.

SGLang only logs a plugin that fails and serves on with its stock kernels. So the plugin reports on itself: the server's
/server_info holds `internal_states[].appliance_kernels`, which `appliance verify identity` compares with the plan.
AROUND hooks, where REPLACE would do: they are handed the original, and other plugins' hooks stay in the chain.
"""

import logging
import os
import pkgutil

from .. import library
from . import choices, decode_entry, logits_entry, topk_entry, trial
from .dispatch import Dispatch

logger = logging.getLogger(__name__)

SWITCH = "APPLIANCE_KERNELS"
DECODE = "sglang.kernels.ops.attention.flash_mla_sm120.flash_mla_with_kvcache_sm120"
LOGITS = (
    "sglang.kernels.ops.attention.dsa.tilelang_kernel.tilelang_fp8_paged_mqa_logits",
    "sglang.srt.layers.attention.dsv4.indexer.fp8_paged_mqa_logits_torch_sm120",
)
"""One of them serves, as the server is set up; each is imported with what it needs, which may be absent."""
TOPK = {
    "sglang.kernels.ops.attention.dsv4.topk.topk_transform_paged": topk_entry.FIRST,
    "sglang.kernels.ops.attention.dsv4.topk.topk_transform_paged_v2": topk_entry.SECOND,
}
"""On trial: put in place only where that is asked for (trial.py)."""
CONTROLLER = "sglang.srt.managers.scheduler_components.internal_state.SchedulerInternalStateController"
FIELD = "appliance_kernels"


class Report:
    """What the server says about the kernels. `state`: active, off (switched off), failed (with a reason)."""

    def __init__(self):
        self.reason: str | None = None
        self.off = False
        self.library: dict[str, str] = {}
        self.dispatches: dict[str, Dispatch] = {}

    def as_dict(self) -> dict:
        """JSON values. Active is what the engine's functions are found to be now, not what was intended."""
        if self.off:
            return {"state": "off", "reason": f"{SWITCH}=off"}
        if not self.dispatches:
            return {"state": "failed", "reason": self.reason}
        for target in self.dispatches:
            if not hasattr(pkgutil.resolve_name(target), "__wrapped__"):
                return {"state": "failed", "reason": f"SGLang did not apply the hook on {target}: see its log"}
        return {
            "state": "active",
            "reason": None,
            **self.library,
            "entries": {
                target.rsplit(".", 1)[1]: {
                    "calibration": dispatch.file,
                    "chosen": {str(bucket): name for bucket, name in dispatch.chosen.items()},
                    "calls": dict(dispatch.calls),
                }
                for target, dispatch in self.dispatches.items()
            },
        }

    def announce(self, _result, *_args, **_kwargs) -> None:
        """AFTER hook of a scheduler's set-up: hooks are applied and logging is configured only then."""
        found = self.as_dict()
        level = logging.ERROR if found["state"] == "failed" else logging.INFO
        words = found["reason"] or (
            f"{', '.join(found['entries'])}; library {found['library']}, sha256 {found['library_sha256'][:16]}"
        )
        logger.log(level, "appliance kernels: %s: %s", found["state"], words)

    def contribute(self, result, *_args, **_kwargs) -> None:
        """AFTER hook of get_internal_state."""
        result.internal_state[FIELD] = self.as_dict()


def register() -> Report:
    """Register the hooks in this process; never raises for a kernel library that cannot be used."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    report = Report()
    HookRegistry.register(f"{CONTROLLER}.__init__", report.announce, HookType.AFTER)
    HookRegistry.register(f"{CONTROLLER}.get_internal_state", report.contribute, HookType.AFTER)
    wanted = os.environ.get(SWITCH) or "on"
    if wanted == "off":
        report.off = True
    elif wanted != "on":
        report.reason = f"{SWITCH} is {wanted!r}; expected on or off"
    else:
        try:
            library.load()
            file = library.path()
            report.library = {"library": str(file), "library_sha256": choices.sha256(file)}
            pkgutil.resolve_name(DECODE)
        except (OSError, AttributeError, ImportError) as error:
            report.reason = str(error)
        else:
            report.dispatches[DECODE] = Dispatch(decode_entry, open_choices)
            optional = dict.fromkeys(LOGITS, logits_entry) | (TOPK if trial.wanted() else {})
            report.dispatches |= {
                target: Dispatch(entry, open_choices) for target, entry in optional.items() if is_here(target)
            }
            for target, dispatch in report.dispatches.items():
                HookRegistry.register(target, dispatch, HookType.AROUND)
    return report


def is_here(target: str) -> bool:
    """Whether the function can be imported in this environment."""
    try:
        pkgutil.resolve_name(target)
    except Exception as error:  # what a foreign module raises when it is imported
        logger.info("appliance kernels: without %s (%s)", target, error)
        return False
    return True


def open_choices(entry, device) -> choices.Choices:
    """The calibration file of this GPU, these versions and this library."""
    import torch

    gpu = torch.cuda.get_device_name(device)
    return choices.Choices(choices.folder(), choices.key_of(gpu, library.path()), entry.NAMES)
