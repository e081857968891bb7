"""CUDA kernels for GPUs that the stock ones leave out or leave slow, as one library without torch headers."""

from .decode import Workspace, prepare, sparse_mla_decode

__all__ = ["Workspace", "prepare", "sparse_mla_decode"]
