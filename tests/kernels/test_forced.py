"""The plugins that force the kernels on for measurements on sm_90, in the pinned engine's own names."""

import json
import pkgutil
import sys
from pathlib import Path

import pytest
import torch

from appliance.engines.sglang.cpu import STANDINS
from tests.kernels.engine.conftest import flash_mla_sm120

FORCED = Path(__file__).parent / "forced"
CONFIG = Path(__file__).parents[1] / "fixtures" / "deepseek-v4-flash" / "config.json"

pytest.importorskip("sglang.srt.plugins.hook_registry")


@pytest.fixture
def forced(monkeypatch):
    """The folder on the path, as a measurement puts it there; and what the engine imports everywhere."""
    monkeypatch.syspath_prepend(str(STANDINS))
    monkeypatch.syspath_prepend(str(FORCED))
    yield
    for name in ("forced_sm120_entry", "livelier_dummy_weights", "v4_model"):
        sys.modules.pop(name, None)


def called_with(q_rows: int, monkeypatch) -> tuple[str, dict]:
    """Which function served a call of `q_rows` query tokens, and with what."""
    import forced_sm120_entry

    served = {}
    monkeypatch.setattr(
        flash_mla_sm120, "flash_mla_with_kvcache_sm120", lambda **call: served.update(sm120=call) or (None,)
    )
    call = forced_sm120_entry.through_sm120_entry(lambda **call: served.update(flash_mla=call) or (None,))
    names = (
        "k_cache", "head_dim_v", "block_table", "cache_seqlens", "tile_scheduler_metadata", "softmax_scale",
        "is_fp8_kvcache", "indices", "topk_length", "attn_sink", "extra_k_cache", "extra_indices_in_kvcache",
        "extra_topk_length",
    )  # fmt: skip
    call(q=torch.empty(q_rows, 1, 64, 512), **dict.fromkeys(names))
    return served.popitem()


def test_decode_goes_through_the_entry_point_of_sm120(forced, monkeypatch):
    name, call = called_with(64, monkeypatch)
    assert name == "sm120"
    assert "tile_scheduler_metadata" not in call and "is_fp8_kvcache" not in call


def test_longer_calls_stay_the_engines(forced, monkeypatch):
    assert called_with(65, monkeypatch)[0] == "flash_mla"


def test_what_is_hooked_is_in_the_pinned_engine(forced):
    import forced_sm120_entry
    import livelier_dummy_weights

    assert callable(pkgutil.resolve_name(livelier_dummy_weights.DUMMY))
    try:
        backend = pkgutil.resolve_name(forced_sm120_entry.BACKEND)
    except ImportError as error:
        pytest.skip(f"the backend imports what is not here: {error}")
    assert callable(backend)


def test_dummy_weights_are_livelier_and_norms_are_one(forced):
    import livelier_dummy_weights
    from sglang.srt.model_loader.weight_utils import initialize_dummy_weights

    model = torch.nn.ModuleDict({"linear": torch.nn.Linear(64, 64), "input_norm": torch.nn.LayerNorm(64)})
    livelier_dummy_weights.fill(initialize_dummy_weights, model)
    assert 0.04 < model["linear"].weight.abs().max() <= 0.05
    assert (model["input_norm"].weight == 1).all()


def test_the_cut_model_keeps_the_shapes(forced, tmp_path):
    import v4_model

    folder = v4_model.make(CONFIG, tmp_path / "v4")
    cut, whole = json.loads((folder / "config.json").read_text()), json.loads(CONFIG.read_text())
    assert cut["num_hidden_layers"] == len(cut["compress_ratios"]) - 1 == 6
    for kept in ("num_attention_heads", "head_dim", "qk_rope_head_dim", "index_topk", "hidden_size"):
        assert cut[kept] == whole[kept]
