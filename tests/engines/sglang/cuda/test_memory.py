"""The engine's own rules, written out: held against its source where that runs without a GPU."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from appliance.documents import ModelReport
from appliance.documents.model import Attention, KvCache
from appliance.engines.sglang import cpu
from appliance.engines.sglang.cuda import memory
from tests.helpers.gpu_machines import v4_flash

GIB = 1024**3
MIB = 1024**2


def model(**changes) -> ModelReport:
    return ModelReport(path="/m", architecture="X", parameters=1, weight_bytes=2, **changes)


def grouped(per_token: float, kv_heads: int, **changes) -> ModelReport:
    cache = KvCache(
        declared_dtype=None, bytes_per_token={"bf16": per_token, "fp8": per_token / 2}, formula="", **changes
    )
    return model(kv_heads=kv_heads, kv_cache=cache)


@pytest.mark.parametrize("chunk", [2048, 4096, 8192, 16384])
def test_the_number_of_prefill_graphs_is_the_engines(chunk):
    hook = pytest.importorskip("sglang.srt.arg_groups.cuda_graph_hook")
    assert memory.graphs_of_prefill(chunk) == len(hook.generate_prefill_cuda_graph_batch_sizes(chunk))


def test_the_ring_and_the_share_of_windows_are_the_engines():
    srt = Path(find_spec("sglang").origin).parent / "srt"
    pool = (srt / "mem_cache" / "deepseek_v4_memory_pool.py").read_text()
    assert f"return {memory.V4_STATE_ROWS} if compress_ratio == 4 else 128" in pool
    configurator = (srt / "model_executor" / "pool_configurator.py").read_text()
    assert f"DSV4_DEFAULT_SWA_FULL_TOKENS_RATIO = {memory.V4_WINDOW_RATIO}" in configurator
    schedule = (srt / "arg_groups" / "fields" / "schedule.py").read_text()
    assert f"fallback={memory.DEFAULT_WINDOW_RATIO}" in schedule.split("swa_full_tokens_ratio:")[1].split("= None")[0]


@pytest.mark.parametrize(
    "gib, tp, chunk, graph",
    [(16, 1, 2048, 8), (32, 2, 4096, 48), (32, 4, 4096, 160), (95.6, 4, 8192, 512), (268, 1, 16384, 512)],
)
def test_chunks_and_graphs_follow_from_the_memory(gib, tp, chunk, graph):
    assert memory.defaults(int(gib * GIB), tp) == memory.Defaults(chunk, graph)


def test_the_reserve_of_the_reference_case():
    capacity = 97887 * MIB
    # 512 + 8192 * 1.5 + 4 / 8 * 1024, and 1536 of an MLA-like prefill's graphs
    assert memory.reserve(capacity, 4, "prefill", latent=True) == (512 + 12288 + 512 + 1536) * MIB
    # 512 + 2048 * 1.5 + 512 + 512 * 2 is less than the floor of 10 GiB for large GPUs
    assert memory.reserve(capacity, 4, "decode", latent=True) == 10 * GIB


def test_kv_heads_are_spread_over_ranks_and_never_thinner_than_one():
    assert memory.bytes_per_token(grouped(8192.0, kv_heads=8), 4) == 2048
    assert memory.bytes_per_token(grouped(8192.0, kv_heads=2), 8) == 4096


def test_a_latent_row_is_on_every_rank():
    assert memory.bytes_per_token(grouped(1000.0, kv_heads=128, replicated=True), 8) == 1000


def test_v4s_pool_holds_windows_for_a_tenth_of_the_tokens_and_the_compressors_states():
    v4 = v4_flash()
    windows = 0.1 * (43 * 585 + 8 / 256 * 4 * (512 + 128) * 4 * 21)
    filling = 21 * (585 - 584) / 4 + 20 * (864 - 584) / 128  # pages of 256, 64 and 2 rows end at multiples of 576
    assert memory.bytes_per_token(v4, 4) == pytest.approx(v4.kv_cache.bytes_per_token["fp8"] + windows + filling)


OF_SGLANG = """
import json, types
import sglang.srt.mem_cache.deepseek_v4_memory_pool as pool
import sglang.srt.model_executor.pool_configurator as sizes
kernel = types.SimpleNamespace(dsv4_attn_backend="flashmla")
sizes.get_exec = pool.get_exec = lambda: types.SimpleNamespace(kernel=kernel)
sized = object.__new__(sizes.DSV4PoolConfigurator)
sized.__dict__.update(
    _unified=False, page_size=256, encoder_replay=False, attn_head_dim=512, indexer_head_dim=128, kv_bytes=584,
    num_layers_total=43, stage_owner_layers={4: range(21), 128: range(20)}, ring_sizes={4: 8, 128: 128},
    c4_shrink_factor=1, indexer_bytes_per_token=pool.get_dsv4_indexer_bytes_per_token(128, False),
    swa_cap_tokens=None, swa_ratio=0.1, disaggregation_mode="null", online_c128_mtp_max_draft_tokens=0,
)
sized.bytes_per_swa_token = sized._get_bytes_per_swa_token()
print(json.dumps([sized._get_bytes_per_full_token(), sized._get_c128_state_fixed_bytes(256)]))
"""


def test_v4s_pools_are_those_that_sglangs_own_class_makes():
    command = [sys.executable, "-W", "ignore", "-c", OF_SGLANG]
    done = subprocess.run(command, env=os.environ | cpu.environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-600:]
    per_token, slots = json.loads(done.stdout.splitlines()[-1])
    assert memory.bytes_per_token(v4_flash(), 4) == pytest.approx(per_token)
    assert memory.fixed_bytes(v4_flash()) == slots


def test_windowed_layers_of_others_take_four_fifths():
    attention = Attention(kind="GQA", layers={"full": 1, "sliding": 1}, sliding_window=100)
    cache = KvCache(declared_dtype=None, bytes_per_token={"bf16": 10.0}, bytes_per_sequence={"bf16": 1000}, formula="")
    assert memory.bytes_per_token(model(attention=attention, kv_cache=cache, kv_heads=1), 1) == 10 + 0.8 * 10


def test_states_of_linear_layers_are_counted_by_request():
    cache = KvCache(declared_dtype=None, bytes_per_token={"bf16": 10.0}, bytes_per_sequence={"bf16": 1000}, formula="")
    assert memory.bytes_per_sequence(model(kv_cache=cache, kv_heads=4), 2) == 500


def test_the_caches_type_is_what_the_checkpoint_declares():
    cache = {"bytes_per_token": {"bf16": 2.0, "fp8": 1.0}, "formula": ""}
    assert memory.cache_type(model(kv_cache=KvCache(declared_dtype=None, **cache))) == "bf16"
    assert memory.cache_type(model(kv_cache=KvCache(declared_dtype="fp8", **cache))) == "fp8"
    assert memory.cache_type(v4_flash()) == "fp8"
    assert memory.cache_type(model()) is None
