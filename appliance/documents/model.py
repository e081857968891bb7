"""ModelReport: what a checkpoint is, read from its configuration, its index and its tensor headers."""

from typing import ClassVar, Literal

from appliance.documents.base import Document, Part

Basis = Literal["tensors", "configuration"]


class ModelFile(Part):
    """One weight file. `sha256` is that of its content, as the hub lists it or as it was hashed here."""

    name: str
    size: int
    sha256: str | None = None


class Rope(Part):
    """How positions beyond those of pre-training are reached."""

    kind: str
    factor: float | None = None
    original_context: int | None = None


class Attention(Part):
    """`kind` is that of the layers that attend to all of the context; `layers` counts all layers by what they do
    (full, sliding, linear, mamba, and for V4 by compression ratio)."""

    kind: Literal["MHA", "GQA", "MQA", "MLA", "DSA", "V4-compressed"]
    layers: dict[str, int]
    sliding_window: int | None = None
    latent_dim: int | None = None
    """MLA: kv_lora_rank, without the part that carries the position."""
    rope_dim: int | None = None
    index_topk: int | None = None
    index_head_dim: int | None = None


class KvCache(Part):
    """Sizes over all layers, on one GPU without tensor parallelism, draft (MTP) layers left out."""

    declared_dtype: str | None
    """What the checkpoint asks for (fp8, ...); null: nothing, the engine's default holds (bf16)."""
    bytes_per_token: dict[str, float]
    """By the type of the cache: fp8, bf16."""
    bytes_per_sequence: dict[str, int] = {}
    """What a sequence holds whatever its length: sliding windows, states of linear layers. By cache type."""
    formula: str
    replicated: bool = False
    """Whether every rank of a tensor-parallel group holds all of it (one latent row a token), rather than its heads."""


class Experts(Part):
    routed: int
    top_k: int | None
    shared: int | None
    width: int | None
    """Columns of an expert's hidden layer (moe_intermediate_size)."""
    moe_layers: int | None
    dense_layers: int | None


class Mtp(Part):
    """Layers that draft tokens. `count` is the best that is known, and `basis` what it rests on."""

    count: int | None
    basis: Literal["tensor names", "compress_ratios", "configuration", "unknown"]
    declared: int | None = None
    declared_key: str | None = None
    tensors: dict[str, int] = {}
    """Number of tensors of each layer that was found, by its prefix."""


class Component(Part):
    """Weights of one component in one format. A component of mixed formats has several entries."""

    component: str
    basis: Basis
    format: str
    """bf16, fp16, fp32, fp8, mxfp8, mxfp4, nvfp4, int4, int8, ...; unknown where nothing says."""
    bits: int | None
    group: str | None = None
    """What shares a scale: "128x128" (a block), "128" (values of a row), "channel", "tensor"."""
    activations: str | None = None
    """What multiplies these weights: "bf16", "fp8 dynamic", "nvfp4 static"; null where nothing says."""
    packing: str | None = None
    """Who wrote it and how: modelopt, compressed-tensors, gptq, awq, native, ..."""
    modules: int = 0
    parameters: int = 0
    bytes: int = 0
    example: str | None = None


class RankBytes(Part):
    """Weights on the fullest of `tp` ranks, with the routed experts spread over `ep` of them."""

    tp: int
    ep: int
    bytes: int
    remarks: list[str] = []


class Problem(Part):
    """One thing about the files that does not hold."""

    kind: str
    file: str
    words: str


class Integrity(Part):
    files: int
    bytes: int
    hashed: int = 0
    """Files whose content was hashed and compared."""
    problems: list[Problem] = []


class ClaimPart(Part):
    """One part of what a name claims, against what is there."""

    claim: str
    verdict: Literal["agrees", "agrees in part", "differs", "unknown"]
    words: str


class TensorCoreUse(Part):
    """What the tensor cores of an architecture do with one format of this checkpoint."""

    architecture: str
    format: str
    components: list[str]
    native: bool
    words: str
    source: str


class ModelReport(Document):
    KIND: ClassVar[str] = "ModelReport"
    kind: Literal["ModelReport"] = "ModelReport"
    path: str
    """Folder, or hub id."""
    origin: Literal["folder", "hub"] = "folder"
    revision: str | None = None
    """Commit on the hub."""
    architecture: str
    model_type: str | None = None
    parameters: int | None
    """Weights, packed ones counted as what they stand for, scales not at all; MTP layers included."""
    parameters_active: int | None = None
    """Weights that one token passes through in the main model: top-k experts of all, no MTP, no vision."""
    weight_bytes: int | None
    tensor_types: dict[str, int] = {}
    """Number of tensors by safetensors type (F32, BF16, F8_E4M3, U8, ...)."""
    layers: int | None = None
    hidden_size: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    context_length: int | None = None
    context_length_scaled: int | None = None
    """What rope scaling reaches, where that is more than the configuration's own limit."""
    rope: Rope | None = None
    vocab_size: int | None = None
    chat_template: bool | None = None
    """Whether the checkpoint brings a chat template; null where its files beside the weights were not looked at."""
    attention: Attention | None = None
    kv_cache: KvCache | None = None
    experts: Experts | None = None
    mtp: Mtp | None = None
    quantisation: list[Component] = []
    ranks: list[RankBytes] = []
    files: list[ModelFile] = []
    integrity: Integrity | None = None
    claims: list[ClaimPart] = []
    tensor_cores: list[TensorCoreUse] = []
    remarks: list[str] = []
    """Where name, configuration and tensors disagree, and what else to know before relying on them."""
    sources: dict[str, str] = {}
