"""What the kernels of sparse MLA take: exact checks, and the arguments as the library wants them."""

import torch

from . import layout, library
from .checks import require, require_tensor

HEADS = (8, 16, 32, 64)
MAX_BATCH = 65535  # the second dimension of a CUDA grid
MAX_PAGE_SIZE = 1024
ALIGNMENT = 16  # bytes that one cp.async moves
MAX_CACHE_BYTES = 2**32 * ALIGNMENT  # the kernel counts in units of that


def _check_source(kernel: str, prefix: str, cache_, indices, lengths, batch: int, device) -> None:
    name = f"{prefix}k_cache"
    kinds = (torch.uint8, torch.float8_e4m3fn)
    require_tensor(kernel, name, cache_, kinds, (None, None, 1, layout.TOKEN_BYTES), device)
    pages, size = cache_.shape[:2]
    require(kernel, pages > 0, name, "at least one page", f"shape {list(cache_.shape)}")
    power_of_two = 0 < size <= MAX_PAGE_SIZE and size & (size - 1) == 0
    require(kernel, power_of_two, name, f"a page size that is a power of two up to {MAX_PAGE_SIZE} (dimension 1)", size)
    stride = cache_.stride(0)
    needed = size * layout.TOKEN_BYTES
    require(
        kernel, stride >= needed and stride % ALIGNMENT == 0,
        name, f"a page stride of at least {needed} bytes and a multiple of {ALIGNMENT}", stride,
    )  # fmt: skip
    require(kernel, cache_.stride(3) == 1, name, "a last dimension of stride 1", f"strides {cache_.stride()}")
    require(kernel, pages * size < 2**31, name, "fewer than 2^31 tokens", pages * size)
    require(kernel, pages * stride < MAX_CACHE_BYTES, name, f"less than {MAX_CACHE_BYTES} bytes", pages * stride)
    name = f"{prefix}indices"
    is_tensor = isinstance(indices, torch.Tensor)
    got = list(indices.shape) if is_tensor else type(indices).__name__
    require(kernel, is_tensor and indices.ndim in (2, 3), name, "a tensor [B, width] or [B, 1, width]", got)
    shape = (batch, None) if indices.ndim == 2 else (batch, 1, None)
    require_tensor(kernel, name, indices, (torch.int32,), shape, device)
    require(kernel, indices.shape[-1] > 0, name, "a width of at least 1", list(indices.shape))
    require(kernel, indices.stride(-1) == 1, name, "a last dimension of stride 1", f"strides {indices.stride()}")
    if lengths is not None:
        name = f"{prefix}topk_length"
        require_tensor(kernel, name, lengths, (torch.int32,), (batch,), device)
        require(kernel, lengths.is_contiguous(), name, "a contiguous tensor", f"strides {lengths.stride()}")


def check(
    kernel: str, q, k_cache, indices, topk_length, attn_sink, softmax_scale,
    extra_k_cache, extra_indices, extra_topk_length, out, lse,
) -> None:  # fmt: skip
    """Raises ValueError unless the kernel takes exactly these tensors. Reads no memory: fake tensors do."""
    require_tensor(kernel, "q", q, (torch.bfloat16,), (None, 1, None, layout.HEAD_DIM), None)
    batch, heads = q.shape[0], q.shape[2]
    require(kernel, heads in HEADS, "q", f"a head count (dimension 2) of {HEADS}", heads)
    require(kernel, 0 < batch <= MAX_BATCH, "q", f"a batch (dimension 0) of 1 to {MAX_BATCH}", batch)
    rows = q.stride(3) == 1 and q.stride(0) % 8 == 0 and q.stride(2) % 8 == 0
    require(kernel, rows, "q", "a last dimension of stride 1, other strides multiples of 8", f"strides {q.stride()}")
    _check_source(kernel, "", k_cache, indices, topk_length, batch, q.device)
    if extra_k_cache is not None:
        _check_source(kernel, "extra_", extra_k_cache, extra_indices, extra_topk_length, batch, q.device)
    else:
        none = extra_indices is None and extra_topk_length is None
        require(kernel, none, "extra_indices and extra_topk_length", "None where extra_k_cache is None", "a tensor")
    if attn_sink is not None:
        require_tensor(kernel, "attn_sink", attn_sink, (torch.float32,), (heads,), q.device)
        require(kernel, attn_sink.is_contiguous(), "attn_sink", "a contiguous tensor", f"strides {attn_sink.stride()}")
    number = isinstance(softmax_scale, (int, float)) and not isinstance(softmax_scale, bool)
    require(kernel, softmax_scale is None or number, "softmax_scale", "a number", type(softmax_scale).__name__)
    for name, t, dtype, shape in (
        ("out", out, torch.bfloat16, (batch, 1, heads, layout.HEAD_DIM)),
        ("lse", lse, torch.float32, (batch, heads, 1)),
    ):
        if t is not None:
            require_tensor(kernel, name, t, (dtype,), shape, q.device)
            require(kernel, t.is_contiguous(), name, "a contiguous tensor", f"strides {t.stride()}")


def require_aligned(kernel: str, name: str, t) -> None:
    pointer = t.data_ptr()
    require(kernel, pointer % ALIGNMENT == 0, name, f"an address that is a multiple of {ALIGNMENT}", f"{pointer:#x}")


def source(kernel: str, name: str, cache_, indices, lengths) -> library.Source:
    require_aligned(kernel, name, cache_)
    pages, size = cache_.shape[:2]
    return library.Source(
        cache=cache_.data_ptr(), page_stride16=cache_.stride(0) // ALIGNMENT,
        indices=indices.data_ptr(), indices_stride=indices.stride(0),
        lengths=None if lengths is None else lengths.data_ptr(),
        width=indices.shape[-1], capacity=pages * size, log2_page_size=size.bit_length() - 1,
    )  # fmt: skip


def fill_sources(
    kernel: str, sources, k_cache, indices, topk_length, extra_k_cache, extra_indices, extra_topk_length
) -> None:
    """Sets both sources of a launch."""
    sources[0] = source(kernel, "k_cache", k_cache, indices, topk_length)
    sources[1] = library.Source(cache=k_cache.data_ptr())  # never null, also where nothing is read from it
    if extra_k_cache is not None:
        sources[1] = source(kernel, "extra_k_cache", extra_k_cache, extra_indices, extra_topk_length)
