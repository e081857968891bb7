"""What SGLang must be told to serve on NVIDIA GPUs, and nothing that it chooses well by itself."""

from appliance.documents import ModelReport
from appliance.engines.settings import Setting
from appliance.engines.sglang.kernels import SWITCH
from appliance.engines.sglang.prefix_cache import decode_can_keep
from appliance.engines.sglang.settings import HEARTBEAT, MEET_ON_LOOPBACK, METRICS, OFFLINE, TRANSFER

NCCL_NAME = {"NODE": "PHB"}
"""NCCL has no NODE and passes over a level that it does not know: between host bridges of one node it says PHB."""
STAY_ON_HOST = Setting(
    "UCX_NET_DEVICES", "lo", "one host: UCX else may pick an adapter that leads nowhere (sgl-project/sglang#28737)"
)
TURIN = ("AuthenticAMD", 26)
"""Vendor and CPU family of AMD's Zen 5 servers."""


def arguments(
    role: str,
    context: int,
    model: ModelReport,
    draft_tokens: int | None,
    fraction: float | None,
    across: tuple[int, ...] = (),
) -> list[Setting]:
    """The flags of a worker, each with its reason.

    context: planned tokens of a request. draft_tokens: how many to draft with what the checkpoint has for that; None:
    none. across: the NUMA node of each rank's GPU, where the worker spans several.
    fraction: the share of the GPU's memory for weights and KV cache; None: SGLang's own choice.
    """
    chosen = [METRICS]
    if context != model.context_length:
        why = (
            "one number for clients and server" if context < (model.context_length or 0) else "reached by rope scaling"
        )
        chosen.append(Setting("--context-length", str(context), f"{why}; the model's own is {model.context_length}"))
    if role != "aggregated":
        chosen.append(TRANSFER)
    if role == "decode" and decode_can_keep(model):
        why = "without it every turn of a conversation sends its whole prefix again (llm-d/llm-d#2109)"
        chosen.append(Setting("--disaggregation-decode-enable-radix-cache", None, why))
    if fraction is not None:
        why = "two workers share this GPU: a share of what is free when each starts, prefill first"
        chosen.append(Setting("--mem-fraction-static", f"{fraction:g}", why))
    if across:
        why = "its GPUs are on several nodes: each rank is bound to that of its own, by numactl where that is installed"
        chosen.append(Setting("--numa-node", tuple(map(str, across)), why))
    if draft_tokens is not None and stages_of_dspark(model):
        why = f"{model.mtp.count} stages of DSpark lie in the checkpoint, by {model.mtp.basis}; no MTP layer (EAGLE)"
        chosen.append(Setting("--speculative-algorithm", "DSPARK", f"{why}; the same on all workers"))
        why = "what was asked for, in place of the checkpoint's own"
        chosen.append(Setting("--speculative-dspark-block-size", str(draft_tokens), why))
    elif draft_tokens is not None:
        alike = "the same on both roles: NIXL refuses a decode with other KV regions than prefill" * (
            role != "aggregated"
        )
        chosen += [
            Setting("--speculative-algorithm", "EAGLE", f"draft with the checkpoint's MTP layer; {alike}".rstrip("; ")),
            Setting("--speculative-num-steps", str(draft_tokens), "one MTP layer, applied so many times"),
            Setting("--speculative-eagle-topk", "1", "a chain of drafts: the only shape that V4's kernels take"),
            Setting("--speculative-num-draft-tokens", str(draft_tokens + 1), "the chain and the token before it"),
        ]
    return chosen


def environment(
    role: str,
    tp_size: int,
    capability: str | None,
    model: ModelReport,
    farthest: str | None,
    nvlink: bool,
    processor: tuple[str | None, int | None],
    own_kernels: bool = False,
) -> list[Setting]:
    """The variables of a worker, each with its reason.

    farthest: the farthest PCIe path among its GPUs, as `nvidia-smi topo -m` names it; None: none, or not known.
    nvlink: whether all pairs have NVLink. processor: (vendor, family) of the CPUs.
    own_kernels: whether appliance-kernels is installed beside the engine.
    """
    chosen = [
        OFFLINE,
        Setting("SGLANG_AUTO_NUMA_BIND", "0", "memory and CPUs are bound before the start: one owner of the binding"),
    ]
    if role != "aggregated":
        chosen += [MEET_ON_LOOPBACK, HEARTBEAT, STAY_ON_HOST]
    if capability == "12.0" and model.model_type == "deepseek_v4":
        why = "window cache in the pages that FlashInfer reads, no copy in each step; the same on both roles"
        chosen.append(Setting("SGLANG_OPT_SM120_DIRECT_SWA_KV", "1", why))
        if own_kernels:
            why = "the kernels that are installed must be active: a server that only logs their failure does not count"
            chosen.append(Setting(SWITCH, "on", why))
    if tp_size > 1 and not nvlink:
        if farthest is not None:
            why = f"peer to peer as far as these GPUs are apart ({farthest}); NCCL stops earlier on some processors"
            chosen.append(Setting("NCCL_P2P_LEVEL", NCCL_NAME.get(farthest, farthest), why))
        why = "PCIe alone: too few channels leave half of the bandwidth (local-inference-lab/rtx6kpro)"
        chosen.append(Setting("NCCL_MIN_NCHANNELS", "8", why))
        if processor == TURIN:
            why = "NCCL underestimates the fabric of EPYC 9005 and picks a slow protocol (NVIDIA/nccl#2127)"
            chosen.append(Setting("NCCL_PROTO", "LL", why))
    return chosen


def stages_of_dspark(model: ModelReport) -> bool:
    """Whether what a V4 checkpoint drafts with are DSpark's stages: several, where an MTP model has one layer."""
    v4 = model.attention is not None and model.attention.kind == "V4-compressed"
    return v4 and model.mtp is not None and (model.mtp.count or 0) > 1
