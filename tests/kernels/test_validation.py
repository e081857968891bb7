"""What the kernel does not take is refused with a ValueError that names it. Fake tensors: no GPU, no memory."""

import pytest
import torch
from appliance_kernels import decode, prefill
from torch._subclasses.fake_tensor import FakeTensorMode

CUDA = torch.device("cuda", 0)


def cache(pages=8, page_size=64, stride=None, dtype=torch.uint8, last=584, device=CUDA):
    stride = stride or -(-page_size * 584 // 576) * 576
    return torch.empty_strided((pages, page_size, 1, last), (stride, 584, 584, 1), dtype=dtype, device=device)


def strided(shape, strides, dtype):
    return torch.empty_strided(shape, strides, dtype=dtype, device=CUDA)


def tensor(*shape, dtype=torch.int32, device=CUDA):
    return lambda: torch.empty(*shape, dtype=dtype, device=device)


def good():
    def empty(*shape, dtype=torch.int32):
        return torch.empty(*shape, dtype=dtype, device=CUDA)

    return {
        "q": empty(3, 1, 16, 512, dtype=torch.bfloat16), "k_cache": cache(page_size=256), "indices": empty(3, 1, 128),
        "topk_length": empty(3), "attn_sink": empty(16, dtype=torch.float32), "softmax_scale": None,
        "extra_k_cache": cache(dtype=torch.float8_e4m3fn), "extra_indices": empty(3, 1, 512),
        "extra_topk_length": empty(3), "out": None, "lse": None,
    }  # fmt: skip


@pytest.fixture(autouse=True)
def fake():
    with FakeTensorMode():
        yield


@pytest.fixture(params=[decode, prefill])
def module(request):
    return request.param


def test_good_arguments_pass(module):
    check_arguments = module.check_arguments
    check_arguments(**good())
    check_arguments(**(good() | {"extra_k_cache": None, "extra_indices": None, "extra_topk_length": None}))
    check_arguments(**(good() | {"topk_length": None, "attn_sink": None, "indices": tensor(3, 128)()}))
    check_arguments(**(good() | {"q": strided((3, 1, 16, 512), (64 * 512, 64 * 512, 512, 1), torch.bfloat16)}))
    check_arguments(**(good() | {"k_cache": cache(page_size=2, stride=1728 + 576)}))


BF16, F32 = torch.bfloat16, torch.float32
BAD = [
    ("q", lambda: None, "q: expected a tensor, got NoneType"),
    ("q", tensor(3, 1, 16, 512, dtype=BF16, device="cpu"), "q: expected a CUDA device, got cpu"),
    ("q", tensor(3, 1, 16, 512, dtype=torch.float16), "q: expected dtype torch.bfloat16, got torch.float16"),
    ("q", tensor(3, 1, 12, 512, dtype=BF16), r"head count \(dimension 2\) of \(8, 16, 32, 64\), got 12"),
    ("q", tensor(3, 2, 16, 512, dtype=BF16), r"q: expected shape \[any, 1, any, 512\], got \[3, 2, 16, 512\]"),
    ("q", tensor(3, 1, 16, 576, dtype=BF16), "q: expected shape"),
    ("q", tensor(0, 1, 16, 512, dtype=BF16), "q: expected a batch"),
    ("q", lambda: strided((3, 1, 16, 512), (8192, 8192, 1, 16), BF16), "q: expected a last dimension"),
    ("k_cache", lambda: cache(last=583), r"k_cache: expected shape \[any, any, 1, 584\]"),
    ("k_cache", lambda: cache(dtype=torch.int8), "k_cache: expected dtype torch.uint8 or torch.float8_e4m3fn"),
    ("k_cache", lambda: cache(page_size=48), "page size that is a power of two up to 1024"),
    ("k_cache", lambda: cache(page_size=2048), "page size that is a power of two up to 1024"),
    ("k_cache", lambda: cache(stride=64 * 584 - 16), "page stride of at least 37376 bytes"),
    ("k_cache", lambda: cache(stride=64 * 584 + 8), "multiple of 16, got 37384"),
    ("k_cache", lambda: cache(pages=0), "at least one page"),
    ("k_cache", lambda: cache(pages=2**25), r"fewer than 2\^31 tokens"),
    ("k_cache", lambda: cache(pages=2**20, page_size=256, stride=2**20), "bytes, got"),
    ("k_cache", lambda: cache(device="cpu"), r"k_cache: expected device cuda:0 \(that of q\), got cpu"),
    ("indices", tensor(3, 1, 128, dtype=torch.int64), "indices: expected dtype torch.int32, got torch.int64"),
    ("indices", tensor(4, 1, 128), r"indices: expected shape \[3, 1, any\]"),
    ("indices", tensor(3, 2, 128), r"indices: expected shape \[3, 1, any\]"),
    ("indices", tensor(384), r"indices: expected a tensor \[B, width\] or \[B, 1, width\], got \[384\]"),
    ("indices", tensor(3, 0), "indices: expected a width of at least 1"),
    ("indices", lambda: strided((3, 128), (256, 2), torch.int32), "indices: expected a last dimension"),
    ("topk_length", tensor(3, dtype=torch.int64), "topk_length: expected dtype torch.int32"),
    ("topk_length", tensor(4), r"topk_length: expected shape \[3\], got \[4\]"),
    ("attn_sink", tensor(16, dtype=BF16), "attn_sink: expected dtype torch.float32"),
    ("attn_sink", tensor(64, dtype=F32), r"attn_sink: expected shape \[16\], got \[64\]"),
    ("softmax_scale", lambda: "1", "softmax_scale: expected a number, got str"),
    ("extra_k_cache", lambda: None, "None where extra_k_cache is None"),
    ("extra_indices", lambda: None, r"extra_indices: expected a tensor \[B, width\]"),
    ("extra_indices", tensor(3, 512, dtype=torch.int64), "extra_indices: expected dtype torch.int32"),
    ("extra_topk_length", tensor(2), r"extra_topk_length: expected shape \[3\]"),
    ("out", tensor(3, 1, 16, 512, dtype=F32), "out: expected dtype torch.bfloat16"),
    ("lse", tensor(3, 1, 16, dtype=F32), r"lse: expected shape \[3, 16, 1\]"),
]


@pytest.mark.parametrize("name, value, message", BAD)
def test_bad_argument_is_named(module, name, value, message):
    with pytest.raises(ValueError, match=f"{module.KERNEL}: .*{message}"):
        module.check_arguments(**(good() | {name: value()}))
