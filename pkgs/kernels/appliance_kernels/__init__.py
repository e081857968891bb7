"""CUDA kernels for GPUs that the stock ones leave out or leave slow, as one library without torch headers."""

from .decode import Workspace, prepare, sparse_mla_decode
from .prefill import sparse_mla_prefill

__all__ = ["Workspace", "prepare", "sparse_mla_decode", "sparse_mla_prefill"]
