"""For which models SGLang's decode server can keep a prefix cache."""

from appliance.documents import ModelReport


def decode_can_keep(model: ModelReport) -> bool:
    """Whether --disaggregation-decode-enable-radix-cache is taken for this model.

    SGLang 0.5.23 raises at the start for DeepSeek-V4 (but on the unified KV layout, which is not its default) and for
    compressed windows (MiMo-V2, Gemma 4): srt/mem_cache/kv_cache_builder.py, validate_decode_radix_cache. Other
    models with windows or states of linear layers are let through there and were not seen to work: left alone as well.
    """
    return model.attention is not None and set(model.attention.layers) <= {"full"}
