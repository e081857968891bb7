"""SGLang plugin for measurements on sm_90: decode goes through the entry point that SGLang calls on sm_120 alone.

Not a part of the product. The engine's own path on sm_90 is FlashMLA; with this plugin and the kernels' plugin beside
it, calls of up to 64 query tokens go to `flash_mla_with_kvcache_sm120`, where the kernels are in place, as they would
on sm_120. Longer calls (prefill) stay FlashMLA's. Written against SGLang 0.5.23, srt/layers/attention/
deepseek_v4_backend.py. Put this folder on PYTHONPATH; SGLANG_SM120_FLASHMLA_BACKEND=triton names the stock kernel that
runs on sm_90.
"""

BACKEND = "sglang.srt.layers.attention.deepseek_v4_backend.DeepseekV4AttnBackend.__init__"


def register() -> None:
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    HookRegistry.register(BACKEND, reroute, HookType.AFTER)


def reroute(_result, backend, *_args, **_kwargs) -> None:
    backend._flash_mla_with_kvcache = through_sm120_entry(backend._flash_mla_with_kvcache)


def through_sm120_entry(flash_mla):
    """`flash_mla` for long calls, the sm_120 entry point for those that it takes as decode."""
    from sglang.kernels.ops.attention import flash_mla_sm120

    taken = (
        "q", "k_cache", "head_dim_v", "softmax_scale", "indices", "topk_length", "attn_sink", "extra_k_cache",
        "extra_indices_in_kvcache", "extra_topk_length",
    )  # fmt: skip

    def call(**arguments):
        if arguments["q"].shape[0] > flash_mla_sm120.SM120_DECODE_MAX_TOKENS:
            return flash_mla(**arguments)
        return flash_mla_sm120.flash_mla_with_kvcache_sm120(**{name: arguments[name] for name in taken})

    return call
