"""DeepSeek's sparse-attention indexer: which cached tokens a query attends to."""

from .logits import paged_mqa_logits, prepare

__all__ = ["paged_mqa_logits", "prepare"]
