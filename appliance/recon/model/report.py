"""The ModelReport of a checkpoint: everything that configuration, index and headers tell, each with its source."""

import re
from collections import Counter
from collections.abc import Iterable

from appliance.documents.model import Component, Experts, ModelFile, ModelReport, Rope
from appliance.recon.model import mtp, ranks, tensor_cores
from appliance.recon.model.attention import attention_of, kv_cache_of
from appliance.recon.model.checkpoint import CONFIG, Checkpoint
from appliance.recon.model.claims import claims_in, reconcile
from appliance.recon.model.configuration import Shape, number, shape_of
from appliance.recon.model.declared import Declared, declared
from appliance.recon.model.integrity import integrity_of
from appliance.recon.model.quant_blocks import left_out
from appliance.recon.model.schemes import Scheme
from appliance.recon.model.skeleton import skeleton
from appliance.recon.model.weights import Weights, components, of_skeleton, of_tensors
from appliance.recon.safetensors_header import BITS

HEADERS = "safetensors headers"
COMPUTED = "computed from config.json: no tensors at hand"
MOST_SCALING = 1e6
LAYER = re.compile(r"(?:^|\.)layers\\?\.(\d+)(?:\D|$)")


def report_on(
    checkpoint: Checkpoint, claim: str | None = None, layouts: Iterable[tuple[int, int]] = ranks.USUAL
) -> ModelReport:
    """Report a checkpoint; weights on each rank for the (tp, ep) of `layouts`. `claim` defaults to what its name says.

    Raises InputError when the configuration is none, or a layout is impossible.
    """
    where = CONFIG if checkpoint.origin == "hub" else f"{checkpoint.path}/{CONFIG}"
    shape = shape_of(checkpoint.config, where)
    declaration = declared(checkpoint.config, checkpoint.quant_file)
    shards = [shard for shard in checkpoint.shards if checkpoint.named is None or shard.name in checkpoint.named]
    headers = [shard.tensors for shard in shards if shard.tensors is not None]
    if headers:
        weights, basis = of_tensors(headers, shape, declaration), HEADERS
    else:
        modules = skeleton(shape)
        weights, basis = (of_skeleton(modules, shape, declaration) if modules else None), COMPUTED
    entries = entries_of(weights, declaration)
    best = [entry for entry in entries if entry.basis == ("tensors" if headers else "configuration")]
    drafts = mtp.mtp_of(shape, dict(weights.mtp_tensors) if headers and weights else None)
    rope = rope_of(shape)
    claims = claims_in(claim) if claim is not None else claims_in(checkpoint.path.rstrip("/").rpartition("/")[2])
    return ModelReport(
        path=checkpoint.path,
        origin="hub" if checkpoint.origin == "hub" else "folder",
        revision=checkpoint.revision,
        architecture=shape.architecture,
        model_type=shape.model_type or None,
        parameters=weights.parameters if weights else None,
        parameters_active=active(weights, shape) if weights else None,
        weight_bytes=weights.bytes if weights else None,
        tensor_types=dict(sorted(Counter(tensor.dtype for tensors in headers for tensor in tensors.values()).items())),
        layers=shape.layers,
        hidden_size=shape.hidden,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        context_length=shape.context,
        context_length_scaled=scaled_context(shape, rope),
        rope=rope,
        vocab_size=shape.vocab,
        chat_template=checkpoint.chat_template,
        attention=attention_of(shape),
        kv_cache=kv_cache_of(shape, declaration.kv_cache),
        experts=experts_of(shape),
        mtp=drafts,
        quantisation=entries,
        ranks=ranks.ranks_of(weights, shape, best, layouts) if weights else [],
        files=[ModelFile(name=shard.name, size=shard.size, sha256=shard.sha256) for shard in checkpoint.shards],
        integrity=integrity_of(checkpoint) if checkpoint.shards or checkpoint.weight_map else None,
        claims=reconcile(claims, best, drafts),
        tensor_cores=tensor_cores.uses(best),
        remarks=remarks(checkpoint, shape, declaration, weights, bool(headers)) + mtp.remarks(drafts),
        sources=sources(basis, declaration, drafts.basis, checkpoint, weights),
    )


def entries_of(weights: Weights | None, declaration: Declared) -> list[Component]:
    """The components as found and as declared; what is declared of all, where the model's modules are not known."""
    if weights is not None:
        return components(weights.found, "tensors") + components(weights.declared, "configuration")
    schemes = dict.fromkeys([scheme for _, _, scheme in declaration.groups] + list(declaration.listed.values()))
    known = list(schemes) or [declaration.base or declaration.plain]
    return [whole(scheme) for scheme in known]


def whole(scheme: Scheme) -> Component:
    """An entry for linear modules that cannot be told apart."""
    return Component(
        component="all_linear",
        basis="configuration",
        format=scheme.format,
        bits=scheme.bits,
        group=scheme.group,
        activations=scheme.activations,
        packing=scheme.packing,
    )


def active(weights: Weights, shape: Shape) -> int:
    """Weights that one token passes: all of the main model but the experts that it is not sent to."""
    idle = weights.idle_weights
    if shape.experts and shape.top_k:
        idle += weights.expert_weights - weights.expert_weights * shape.top_k // shape.experts
    return weights.parameters - idle


def experts_of(shape: Shape) -> Experts | None:
    """The experts of the model, or None for a dense one."""
    if not shape.experts:
        return None
    moe = sum(shape.moe)
    dense = sum(not sparse and kind != "mlp" for sparse, kind in zip(shape.moe, shape.kinds, strict=False))
    hybrid = "hybrid_override_pattern" in shape.text  # a layer is attention or experts there, never both
    return Experts(
        routed=shape.experts,
        top_k=shape.top_k,
        shared=shape.shared_experts,
        width=shape.expert_width,
        moe_layers=moe,
        dense_layers=shape.kinds.count("mlp") - moe if hybrid else dense,
    )


def rope_of(shape: Shape) -> Rope | None:
    """Rope scaling, from rope_scaling or (transformers 5) rope_parameters; None where positions are not scaled."""
    for key in ("rope_scaling", "rope_parameters"):
        scaling = shape.text.get(key)
        if not isinstance(scaling, dict):
            continue
        kind = scaling.get("rope_type") or scaling.get("type")
        if not isinstance(kind, str) or kind == "default":
            continue
        factor = scaling.get("factor")
        return Rope(
            kind=kind,
            factor=float(factor) if type(factor) in (int, float) and 0 < factor < MOST_SCALING else None,
            original_context=number(scaling, "original_max_position_embeddings"),
        )
    return None


def scaled_context(shape: Shape, rope: Rope | None) -> int | None:
    """Context that rope scaling reaches, where it is more than max_position_embeddings; None otherwise.

    As vLLM and SGLang derive it: the original length times the factor; the configured one times the factor where no
    original is given, except for types that always count from the original (yarn, llama3, longrope).
    """
    if rope is None or not rope.factor or not shape.context:
        return None
    base = rope.original_context
    if base is None and rope.kind in ("linear", "dynamic"):
        base = shape.context
    reached = int(base * rope.factor) if base else 0
    return reached if reached > shape.context else None


def remarks(
    checkpoint: Checkpoint, shape: Shape, declaration: Declared, weights: Weights | None, tensors: bool
) -> list[str]:
    """Where the sources disagree, and what else to know."""
    words = list(declaration.remarks)
    if declaration.cut:
        words.append(f"{declaration.where}: no list of excluded modules: only the routed experts are taken as declared")
    if not tensors:
        words.append("no tensor headers at hand: formats and bytes are what the configuration declares")
        if weights is None:
            words.append(f"model type {shape.model_type!r}: its modules are not known here, bytes cannot be computed")
    if not any(holder.get(key) for holder in (checkpoint.config, shape.text) for key in ("dtype", "torch_dtype")):
        words.append("config.json names no dtype: bf16 is taken for what is not quantised")
    beyond = beyond_the_model(declaration, shape)
    if beyond:
        words.append(beyond)
    if weights is not None:
        words.extend(found_and_declared(weights))
        if weights.kv_scales and not declaration.kv_cache:
            words.append(f"{weights.kv_scales} modules carry KV cache scales, no file asks for a quantised KV cache")
        sums = weights.found or weights.declared
        tables = sum(entry.bytes for (component, _), entry in sums.items() if component == "engram")
        if tables:
            words.append(f"{tables / 1e9:.0f} GB are n-gram (engram) tables, which need not sit on a GPU")
        if tensors and checkpoint.declared_size is not None and checkpoint.declared_size != weights.bytes:
            words.append(f"the index says {checkpoint.declared_size} bytes, the headers {weights.bytes}")
    novel = sorted(
        {tensor.dtype for shard in checkpoint.shards for tensor in (shard.tensors or {}).values()} - BITS.keys()
    )
    if novel:
        words.append(f"tensor types that are not known here: {', '.join(novel)}; what they hold is not counted right")
    doubled = doubled_names(checkpoint)
    if doubled:
        words.append(doubled)
    return words


def found_and_declared(weights: Weights) -> list[str]:
    """One line for each component whose tensors are not what the configuration says."""
    return [
        f"{component}: tensors are {found.format} {found.group or ''}".rstrip()
        + f", the configuration says {said.format} {said.group or ''}".rstrip()
        + f" ({example})"
        for (component, found, said), example in weights.differing.items()
    ]


def beyond_the_model(declaration: Declared, shape: Shape) -> str | None:
    """Names of layers that the model does not have, in the list of what is not quantised."""
    last = (shape.layers or 0) + max(shape.mtp_declared or 0, 1)
    names = [name for name in left_out(declaration.block) if (hit := LAYER.search(name)) and int(hit[1]) >= last]
    if not shape.layers or not names:
        return None
    return f"{len(names)} entries of the list of unquantised modules name layers that do not exist, first {names[0]}"


def doubled_names(checkpoint: Checkpoint) -> str | None:
    """Tensor names that a broken rename left behind ("….weight.weight")."""
    names = [name for shard in checkpoint.shards for name in shard.tensors or () if name.endswith(".weight.weight")]
    return f"{len(names)} tensor names end in .weight.weight, first {names[0]}: a broken rename" if names else None


def sources(
    basis: str, declaration: Declared, mtp_basis: str, checkpoint: Checkpoint, weights: Weights | None
) -> dict[str, str]:
    """Where each fact came from, or why it is absent."""
    counted = basis if weights is not None else "absent: no tensors, and a model type that is not known here"
    hub = checkpoint.origin == "hub"
    return {
        "architecture": CONFIG,
        "layers": CONFIG,
        "attention": CONFIG,
        "kv_cache": f"{CONFIG}; sizes as SGLang 0.5.23 allocates them; type: {declaration.where}",
        "parameters": counted,
        "parameters_active": counted,
        "weight_bytes": counted,
        "ranks": counted,
        "quantisation": f"{basis}; declared: {declaration.where}" if weights and weights.found else declaration.where,
        "mtp": mtp_basis,
        "files": "hub: sizes and LFS sha256" if hub else "file system",
    }
