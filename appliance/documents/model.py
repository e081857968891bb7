"""ModelReport: what a checkpoint is, read from its configuration and its tensor headers."""

from typing import ClassVar, Literal

from appliance.documents.base import Document


class ModelReport(Document):
    KIND: ClassVar[str] = "ModelReport"
    kind: Literal["ModelReport"] = "ModelReport"
    path: str
    architecture: str
    model_type: str | None = None
    parameters: int
    weight_bytes: int
    tensor_types: dict[str, int] = {}
    """Number of tensors by safetensors type (F32, BF16, F8_E4M3, U8, ...)."""
    layers: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    context_length: int | None = None
    vocab_size: int | None = None
    sources: dict[str, str] = {}
