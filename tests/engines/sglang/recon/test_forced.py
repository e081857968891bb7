import pytest

from appliance.documents import ForcedSetting
from appliance.engines.sglang.recon.family import load
from appliance.engines.sglang.recon.forced import forced
from appliance.engines.sglang.recon.gates import base_evaluator
from appliance.engines.sglang.recon.source import SourceTree, Unknown
from appliance.recon.engine.arch import Arch
from tests.helpers.source_copy import change, copy_source

OVERRIDES = "srt/arg_groups/model_overrides/deepseek_v4.py"


def settings(tree: SourceTree, arch: Arch) -> list[ForcedSetting]:
    return forced(load("deepseek_v4"), tree, base_evaluator(tree, arch))


def named(found: list[ForcedSetting], name: str) -> list[ForcedSetting]:
    return [setting for setting in found if setting.name == name]


@pytest.fixture(scope="module")
def on_120() -> list[ForcedSetting]:
    return settings(SourceTree.installed("sglang"), Arch(12, 0))


@pytest.mark.parametrize(
    "name, value, where",
    [
        ("--attention-backend", "dsv4", f"{OVERRIDES}:24"),
        ("--page-size", "256", f"{OVERRIDES}:61"),
        ("--swa-full-tokens-ratio", "0.1", f"{OVERRIDES}:48"),
        ("--kv-cache-dtype", "fp8_e4m3", "srt/arg_groups/overrides.py:912"),
        ("--max-running-requests", "256", "srt/arg_groups/deepseek_v4_hook.py:142"),
        ("SGLANG_OPT_USE_TOPK_V2", "False", "srt/arg_groups/model_hook.py:488"),
        ("SGLANG_OPT_USE_TILELANG_INDEXER", "True", "srt/arg_groups/model_hook.py:502"),
    ],
)
def test_what_is_set_for_deepseek_v4_on_sm_120(on_120, name, value, where):
    (setting,) = named(on_120, name)
    assert setting.value == value
    assert setting.where == f"sglang/{where}"


def test_conditions_that_are_left_open_are_in_the_sources_own_words(on_120):
    mxfp4 = next(s for s in named(on_120, "--moe-runner-backend") if s.value == "flashinfer_mxfp4")
    assert "model_config.is_fp4_experts" in mxfp4.when
    assert not any("is_sm120" in condition or "device" in condition for condition in mxfp4.when)


def test_a_users_own_value_wins_where_the_source_asks_for_it(on_120):
    assert named(on_120, "SGLANG_OPT_USE_TILELANG_INDEXER")[0].unless_set
    assert not named(on_120, "SGLANG_OPT_USE_TOPK_V2")[0].unless_set


def test_the_block_for_sm_120_is_not_that_of_others():
    found = settings(SourceTree.installed("sglang"), Arch(9, 0))
    assert not [setting for setting in found if setting.name.startswith("SGLANG_")]
    assert named(found, "--page-size")


def test_a_value_that_changed_in_the_source_changes_in_the_report(tmp_path):
    tree = copy_source(load("deepseek_v4"), tmp_path)
    tree = change(tree, OVERRIDES, "page_size = 256", "page_size = 512")
    assert named(settings(tree, Arch(12, 0)), "--page-size")[0].value == "512"
    tree = change(tree, OVERRIDES, "page_size = 512", "page_size = pick()")
    (setting,) = named(settings(tree, Arch(12, 0)), "--page-size")
    assert (setting.value, setting.expression) == (None, "page_size")


def test_a_pass_that_is_gone_is_unknown(tmp_path):
    tree = copy_source(load("deepseek_v4"), tmp_path)
    tree = change(tree, "srt/arg_groups/overrides.py", "def _deepseek_v4_kv_cache_dtype", "def _other")
    with pytest.raises(Unknown, match="has no _deepseek_v4_kv_cache_dtype any more"):
        settings(tree, Arch(12, 0))


@pytest.mark.parametrize("model, flag", [("KimiK3ForConditionalGeneration", "--decode-attention-backend")])
def test_what_an_early_return_keeps_from_this_architecture_is_not_set_on_it(model, flag):
    family = load("generic").of_class(model)
    tree = SourceTree.installed("sglang")
    of = {arch: forced(family, tree, base_evaluator(tree, arch)) for arch in (Arch(12, 0), Arch(10, 0))}
    assert not named(of[Arch(12, 0)], flag)
    assert {setting.value for setting in named(of[Arch(10, 0)], flag)} == {"trtllm_mla"}


def test_a_class_without_a_table_has_what_is_registered_for_it(tmp_path):
    tree = SourceTree.installed("sglang")
    found = forced(load("generic").of_class("MiniMaxM2ForCausalLM"), tree, base_evaluator(tree, Arch(12, 0)))
    assert [setting.name for setting in found] == ["--enable-tf32-matmul"]
    assert forced(load("generic"), tree, base_evaluator(tree, Arch(12, 0))) == []


def test_conditions_are_told_without_double_negations():
    tree = SourceTree.installed("sglang")
    found = forced(load("generic").of_class("KimiK3ForConditionalGeneration"), tree, base_evaluator(tree, Arch(10, 0)))
    (runner,) = named(found, "--moe-runner-backend")
    assert runner.when[0] == "cfg.moe_runner_backend == 'auto'"
    assert not [condition for setting in found for condition in setting.when if condition.startswith("not not")]
