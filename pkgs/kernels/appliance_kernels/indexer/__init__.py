"""DeepSeek's sparse-attention indexer: which cached tokens a query attends to."""

from .logits import paged_mqa_logits
from .topk import paged_topk, prepare, topk_transform

__all__ = ["paged_mqa_logits", "paged_topk", "prepare", "topk_transform"]
