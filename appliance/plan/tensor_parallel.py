"""How many ranks a model can be cut into."""

from appliance.documents import ModelReport


def allowed(model: ModelReport, most: int) -> int:
    """The largest tensor-parallel size up to `most` that divides the model's heads, at least 1.

    SGLang asks that ranks divide the attention heads, and that KV heads divide ranks or the other way round (0.5.23:
    srt/configs/model_config.py get_num_kv_heads). Expert widths that a format's blocks do not fit are avoided: kernels
    refuse them or pad (the report's remarks on ranks). An expert's width divides by it (0.5.23:
    srt/layers/moe/fused_moe_triton/layer.py). Powers of two: SGLang's and FlashInfer's PCIe all-reduce know 2, 4 and 8.
    """
    if not model.heads:
        return max(size for size in (1, 2, 4, 8, 16, 32, 64) if size <= max(most, 1))
    latent = model.kv_cache is not None and model.kv_cache.replicated
    width = model.experts.width if model.experts else None
    for size in (2**power for power in range(max(most, 1).bit_length() - 1, 0, -1)):
        if width and width % size:
            continue
        kv_heads = size if latent or not model.kv_heads else model.kv_heads
        if model.heads % size == 0 and (kv_heads % size == 0 or size % kv_heads == 0) and not cut_blocks(model, size):
            return size
    return 1


def cut_blocks(model: ModelReport, size: int) -> bool:
    """Whether the model's report says that the experts' blocks do not come out even on so many ranks."""
    return any("no multiple of" in remark for rank in model.ranks if rank.tp == size for remark in rank.remarks)
