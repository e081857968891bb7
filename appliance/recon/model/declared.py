"""What the configuration files say of each module's quantisation.

Two files may speak: config.json (quantization_config, at the top or in text_config) and modelopt's
hf_quant_config.json. Engines read the first that there is, in this order; where the two differ, that is reported.
"""

import re
from dataclasses import dataclass, field

from appliance.recon.model.disagreements import disagreements
from appliance.recon.model.names import Place
from appliance.recon.model.patterns import NamePatterns
from appliance.recon.model.quant_blocks import (
    kv_of,
    left_out,
    lists_exclusions,
    number_format,
    quantization_block,
    quantization_of,
)
from appliance.recon.model.schemes import UNKNOWN, Scheme

DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
NEVER = ("router", "embedding", "other", "vision")
"""Components that writers leave as they are, unless a list names them: routers are no Linear module in most model
classes, embeddings in none; vision towers are left out even where no list says so."""
NATIVE_PLAIN = re.compile(r"(^|\.)(compressor|weights_proj|indexers_proj|eh_proj|e_proj|h_proj)(\.|$)")
"""Modules of DeepSeek's own float8 checkpoints that stay bf16 though no list says so: the KV compressor and the
weight projection of the indexer (bf16 in the reference code and in SGLang's srt/models/deepseek_v4.py)."""
MODELOPT = {
    "FP8": ("fp8", "tensor", "fp8 static"),
    "FP8_PER_CHANNEL_PER_TOKEN": ("fp8", "channel", "fp8 dynamic"),
    "FP8_PB_WO": ("fp8", "128x128", "fp8 dynamic"),
    "NVFP4": ("nvfp4", "16", "nvfp4 static"),
    "NVFP4_AWQ": ("nvfp4", "16", "nvfp4 static"),
    "W4A16_NVFP4": ("nvfp4", "16", None),
    "MXFP4": ("mxfp4", "32", None),
    "MXFP8": ("mxfp8", "32", "mxfp8 dynamic"),
    "W4A16_AWQ": ("int4", "128", None),
    "W4A8_AWQ": ("int4", "128", "fp8 static"),
    "INT8_SQ": ("int8", "channel", "int8 static"),
}
"""modelopt's quant_algo: format, what shares a scale, activations; None: those of the model (weight-only)."""


@dataclass(frozen=True)
class Declared:
    """A quantisation as declared. `scheme_of` gives one module's."""

    where: str
    """Which file and place says so."""
    method: str | None
    plain: Scheme
    """Scheme of what is not quantised."""
    block: dict = field(repr=False)
    """The quantization_config itself."""
    ignore: NamePatterns = field(repr=False)
    groups: list[tuple[NamePatterns, bool, Scheme]] = field(default_factory=list, repr=False)
    """compressed-tensors: targets, whether they mean every Linear, scheme."""
    listed: dict[str, Scheme] = field(default_factory=dict, repr=False)
    """modelopt's quantized_layers."""
    base: Scheme | None = None
    """What holds for every Linear that nothing else speaks of; None: the plain scheme."""
    expert: Scheme | None = None
    """What holds for routed experts, where said apart (expert_dtype)."""
    only_experts: bool = False
    cut: bool = False
    """The file lacks its list of exclusions, which its writer always puts: what it leaves out cannot be told."""
    kv_cache: str | None = None
    remarks: tuple[str, ...] = ()

    def scheme_of(self, module: str, place: Place) -> Scheme:
        """The scheme declared for `module`, which belongs to `place`."""
        inner = place.inner
        for name in ancestors(module):
            if name in self.listed:
                return self.listed[name]
        if inner in NEVER:
            return self.plain
        if inner == "engram" and self.base is not None:  # tables to look up: what shares a scale is not declared
            return Scheme(self.base.format, packing=self.base.packing)
        if self.listed and self.base is None:
            return self.plain
        if self.ignore.match(module) and not self.listed:
            return self.plain
        for targets, every_linear, scheme in self.groups:
            if every_linear or targets.match(module):
                return scheme
        if inner == "routed_experts" and self.expert is not None:
            return self.expert
        if self.cut:
            return self.base._replace(group=None) if inner == "routed_experts" and self.base else UNKNOWN
        if self.base is None or (self.only_experts and inner != "routed_experts"):
            return self.plain
        if inner == "head" or (self.method == "fp8" and NATIVE_PLAIN.search(module)):
            return self.plain
        return self.base


def ancestors(module: str) -> list[str]:
    """The module's name and those of all that it lies within, longest first."""
    parts = module.split(".")
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]


def declared(config: dict, quant_file: dict | None) -> Declared:
    """The quantisation that the files declare. `quant_file` is hf_quant_config.json, or None."""
    block, where = quantization_block(config)
    other = quantization_of(quant_file)
    if block is None and other is None:
        return Declared("config.json: no quantization_config", None, plain_of(config), {}, NamePatterns([]))
    if block is None:
        assert other is not None
        remark = "config.json holds no quantization_config: only hf_quant_config.json tells"
        return read_block(config, other, "hf_quant_config.json", (remark,), kv_of(other))
    remarks = disagreements(block, other) if other is not None else ()
    kv = kv_of(block) or (kv_of(other) if other is not None else None)
    return read_block(config, block, where, remarks, kv)


def plain_of(config: dict) -> Scheme:
    """The scheme of weights that are not quantised: the configuration's type, bf16 where it names none."""
    text = config.get("text_config") if isinstance(config.get("text_config"), dict) else {}
    name = config.get("dtype") or config.get("torch_dtype") or text.get("dtype") or text.get("torch_dtype")
    dtype = DTYPES.get(str(name).removeprefix("torch."), "bf16")
    return Scheme(dtype, None, dtype)


def read_block(config: dict, block: dict, where: str, remarks: tuple[str, ...], kv: str | None) -> Declared:
    """The declaration in one quantization_config."""
    method, algo = block.get("quant_method"), block.get("quant_algo")
    if not isinstance(method, str):
        method = "modelopt" if isinstance(algo, str) else None
    plain = plain_of(config)
    common = {
        "where": where,
        "method": method,
        "plain": plain,
        "block": block,
        "ignore": NamePatterns(left_out(block)),
        "kv_cache": kv,
    }
    readers = {"fp8": fp8, "compressed-tensors": compressed_tensors, "modelopt": modelopt, "modelopt_fp4": modelopt}
    readers |= {"gptq": integers, "awq": integers, "mxfp4": mxfp4}
    reader = readers.get(method or "")
    if reader is None:
        remark = f"{where}: quant_method {method!r} is not one that is known here: what it covers cannot be told"
        return Declared(**common, base=Scheme("unknown", packing=method), remarks=(*remarks, remark))
    told = reader(config, block, plain)
    if told.get("expert") and told["listed"]:
        remark = "expert_dtype still says fp4 (mxfp4), quantized_layers says otherwise: the list decides"
        remarks = (*remarks, remark)
    unreadable = tuple(f"{where}: pattern {text!r} cannot be read" for text in common["ignore"].unreadable)
    return Declared(**common, **told, remarks=(*remarks, *unreadable))


def fp8(config: dict, block: dict, plain: Scheme) -> dict:
    """quant_method fp8: blocks or whole tensors; expert_dtype fp4 makes the routed experts mxfp4."""
    size = block.get("weight_block_size")
    group = "x".join(map(str, size)) if isinstance(size, list) and len(size) == 2 else "tensor"
    scheme = block.get("activation_scheme")
    base = Scheme("fp8", group, f"fp8 {scheme if isinstance(scheme, str) else 'dynamic'}", "native")
    expert = base._replace(format="mxfp4", group="32", activations=None) if expert_dtype(config, block) else None
    return {"base": base, "expert": expert, "listed": quantized_layers(block, plain)}


def expert_dtype(config: dict, block: dict) -> bool:
    """Whether the routed experts are 4-bit: said at the top (V4), in quantization_config (V4.1), or in text_config."""
    text = config.get("text_config") if isinstance(config.get("text_config"), dict) else {}
    return any(holder.get("expert_dtype") in ("fp4", "mxfp4") for holder in (config, block, text))


def quantized_layers(block: dict, plain: Scheme) -> dict[str, Scheme]:
    """modelopt's list of layers with an algorithm each (MIXED_PRECISION)."""
    listed = block.get("quantized_layers")
    if not isinstance(listed, dict):
        return {}
    return {
        name: by_algorithm(entry.get("quant_algo"), entry.get("group_size"), plain)
        for name, entry in listed.items()
        if isinstance(entry, dict)
    }


def by_algorithm(algo: object, group: object, plain: Scheme) -> Scheme:
    """The scheme that one of modelopt's algorithms stands for."""
    if not isinstance(algo, str) or algo not in MODELOPT:
        return Scheme("unknown", packing="modelopt")
    form, usual, activations = MODELOPT[algo]
    shared = str(group) if isinstance(group, int) and group and usual.isdigit() else usual
    return Scheme(form, shared, activations or plain.format, "modelopt")


def modelopt(config: dict, block: dict, plain: Scheme) -> dict:
    """modelopt: one algorithm for every Linear that is not excluded, or a list of layers."""
    listed = quantized_layers(block, plain)
    algo = block.get("quant_algo")
    if listed or algo == "MIXED_PRECISION":
        return {"listed": listed} if listed else {"base": UNKNOWN}
    return {"base": by_algorithm(algo, block.get("group_size"), plain), "cut": not lists_exclusions(block)}


def compressed_tensors(config: dict, block: dict, plain: Scheme) -> dict:
    """compressed-tensors: groups of targets, each with weights and input activations."""
    groups = []
    entries = block.get("config_groups")
    for entry in entries.values() if isinstance(entries, dict) else []:
        if not isinstance(entry, dict):
            continue
        targets = entry.get("targets")
        every = not isinstance(targets, list) or "Linear" in targets
        form = entry.get("format") or block.get("format")
        groups.append((NamePatterns(targets), every, by_arguments(entry, form, plain)))
    return {"groups": groups}


def by_arguments(entry: dict, form: object, plain: Scheme) -> Scheme:
    """The scheme of one of compressed-tensors' groups."""
    weights, inputs = entry.get("weights"), entry.get("input_activations")
    if not isinstance(weights, dict):
        return UNKNOWN
    packing = f"compressed-tensors {form}" if isinstance(form, str) else "compressed-tensors"
    name, size = number_format(weights), weights.get("group_size")
    if name is None:
        return Scheme("unknown", packing=packing)
    structure, strategy = weights.get("block_structure"), weights.get("strategy")
    if isinstance(structure, list) and len(structure) == 2:
        group = "x".join(map(str, structure))
    else:
        group = str(size) if isinstance(size, int) and size > 0 else strategy if isinstance(strategy, str) else "tensor"
    return Scheme(name, group, activations_of(inputs, plain), packing)


def activations_of(inputs: object, plain: Scheme) -> str | None:
    """ "fp8 dynamic", or the model's own type where activations are not quantised."""
    if not isinstance(inputs, dict):
        return plain.format
    name = number_format(inputs)
    return f"{name} {'static' if inputs.get('dynamic') is False else 'dynamic'}" if name else None


def integers(config: dict, block: dict, plain: Scheme) -> dict:
    """GPTQ and AWQ: integers for every Linear."""
    bits, size = block.get("bits", block.get("w_bit")), block.get("group_size", block.get("q_group_size"))
    group = "channel" if size == -1 else str(size) if isinstance(size, int) else None
    form = f"int{bits}" if isinstance(bits, int) else "unknown"
    return {"base": Scheme(form, group, plain.format, str(block.get("quant_method")))}


def mxfp4(config: dict, block: dict, plain: Scheme) -> dict:
    """quant_method mxfp4 (gpt-oss): the routed experts alone."""
    return {"base": Scheme("mxfp4", "32", plain.format, "native"), "only_experts": True}
