"""The tables against the SGLang that is installed, and against copies of it that were changed."""

import pytest

from appliance.documents import Binary, KernelStep, Tool
from appliance.engines.sglang.recon import family as families
from appliance.engines.sglang.recon.source import SourceTree
from appliance.engines.sglang.recon.steps import steps, with_readiness
from tests.helpers.source_copy import change, copy_source

ARCHITECTURES = ["sm_90", "sm_100", "sm_103", "sm_120", "sm_121"]
FLASHMLA = "kernels/ops/attention/flash_mla_sm120.py"
HOOK = "srt/arg_groups/model_hook.py"


@pytest.fixture(scope="module")
def installed() -> SourceTree:
    return SourceTree.installed("sglang")


@pytest.fixture
def v4() -> families.Family:
    return families.load("deepseek_v4")


def by_step(found: list[KernelStep]) -> dict[str, KernelStep]:
    return {step.step: step for step in found}


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", families.names())
def test_every_row_holds_in_the_installed_source(installed, name, arch):
    found = steps(families.load(name), arch, installed)
    assert {step.step: step.reason for step in found if step.reason} == {}
    assert all(step.decided_at for step in found)


@pytest.mark.parametrize("name", families.names())
def test_a_step_and_its_case_are_named_once_for_an_architecture(name):
    family = families.load(name)
    for arch in ARCHITECTURES:
        cases = [(row.step, row.when) for row in family.rows if row.holds_for(arch)]
        assert len(cases) == len(set(cases))


@pytest.mark.parametrize(
    "step, kernel, defined, decided",
    [
        ("sparse prefill", "_sparse_mla_sm120_paged_attention", f"{FLASHMLA}:215", f"{FLASHMLA}:317"),
        ("sparse decode", "_sparse_mla_sm120_paged_attention", f"{FLASHMLA}:583", "deepseek_v4_backend.py:4336"),
        ("indexer logits", "tilelang_fp8_paged_mqa_logits", "dsa/tilelang_kernel.py:1351", "dsv4/indexer.py:863"),
        ("top-k", "topk_transform_paged", "dsv4/topk.py:106", f"{HOOK}:488"),
        ("FP8 GEMM", "CUTLASS block FP8", "fp8_utils.py:1380", "fp8_utils.py:1213"),
        ("experts", "MXFP8xMXFP4", "mxfp4_flashinfer_cutlass_moe.py:33", "fp8.py:466"),
    ],
)
def test_the_kernels_of_deepseek_v4_on_sm_120_and_where_they_are_in_0_5_23(
    installed, v4, step, kernel, defined, decided
):
    found = by_step(steps(v4, "sm_120", installed))[step]
    assert kernel in found.kernel
    assert found.defined_at.endswith(defined)
    assert found.decided_at.endswith(decided)


def test_architectures_run_different_kernels(installed, v4):
    kernels = {arch: by_step(steps(v4, arch, installed)) for arch in ("sm_90", "sm_100", "sm_120")}
    assert len({found["experts"].kernel for found in kernels.values()}) == 3
    assert "FlashMLA" in kernels["sm_90"]["sparse decode"].kernel
    assert "DeepGEMM" in kernels["sm_100"]["indexer logits"].kernel


def test_a_copy_that_was_not_changed_says_what_the_installed_source_says(installed, v4, tmp_path):
    assert steps(v4, "sm_120", copy_source(v4, tmp_path)) == steps(v4, "sm_120", installed)


@pytest.mark.parametrize(
    "file, old, new, step, reason",
    [
        # the threshold between prefill and decode
        (FLASHMLA, "SM120_DECODE_MAX_TOKENS = 64", "SM120_DECODE_MAX_TOKENS = 32", "sparse prefill", "= 64"),
        # one more condition in a gate
        (FLASHMLA, "q.shape[0] > SM120_DECODE_MAX_TOKENS:", "q.shape[0] > SM120_DECODE_MAX_TOKENS and q.ndim == 4:",
         "sparse prefill", "the gate `q.shape[0] > SM120_DECODE_MAX_TOKENS`"),
        # a symbol that is gone
        (FLASHMLA, "def _flash_mla_flashinfer(", "def _flash_mla_other(", "sparse decode", "no _flash_mla_flashinfer"),
        ("kernels/ops/attention/dsa/tilelang_kernel.py", "def tilelang_fp8_paged_mqa_logits(", "def tilelang_new(",
         "indexer logits", "no tilelang_fp8_paged_mqa_logits"),
        # another default
        ("srt/environ.py", 'SGLANG_SM120_FLASHMLA_BACKEND = EnvStr("flashinfer")',
         'SGLANG_SM120_FLASHMLA_BACKEND = EnvStr("triton")', "sparse decode", "SGLANG_SM120_FLASHMLA_BACKEND"),
        # the block for this architecture asks something else now
        (HOOK, "if get_platform().is_sm120:", "if get_platform().is_blackwell:", "top-k", "other conditions now"),
        # an earlier branch before the one that is taken
        ("srt/layers/attention/dsv4/indexer.py", "elif use_aiter_fp4:\n            fn = None",
         "elif use_aiter_fp4 or is_new():\n            fn = None", "indexer logits", "other conditions now"),
        # a variable that nobody reads any more
        ("srt/mem_cache/deepseek_v4_memory_pool.py", "envs.SGLANG_OPT_SM120_DIRECT_SWA_KV.get()", "False",
         "window KV pages", "not read any more"),
        # an option that is gone
        ("srt/arg_groups/fields/exec_.py", '"--fp8-gemm-backend"', '"--fp8-backend"', "FP8 GEMM", "--fp8-gemm-backend"),
    ],
)  # fmt: skip
def test_a_change_in_the_source_makes_the_row_unknown_with_the_reason(v4, tmp_path, file, old, new, step, reason):
    tree = change(copy_source(v4, tmp_path), file, old, new)
    changed = by_step(steps(v4, "sm_120", tree))
    assert changed[step].kernel is None
    assert reason in changed[step].reason
    assert changed[step].force == [] and changed[step].fallback is None
    assert changed["MTP"].kernel is not None, "a change elsewhere does not make other rows unknown"


def test_comments_and_layout_may_change(v4, tmp_path):
    tree = change(
        copy_source(v4, tmp_path), FLASHMLA, "SM120_DECODE_MAX_TOKENS = 64", "SM120_DECODE_MAX_TOKENS=64  # !"
    )
    assert all(step.kernel for step in steps(v4, "sm_120", tree))


def test_a_file_that_is_gone_or_broken_makes_its_rows_unknown(v4, tmp_path):
    tree = copy_source(v4, tmp_path)
    (tree.root / FLASHMLA).unlink()
    (tree.root / "srt/layers/quantization/fp8.py").write_text("def (")
    found = by_step(steps(v4, "sm_120", SourceTree(tree.root)))
    assert "is not in the installed source" in found["sparse decode"].reason
    assert "is not Python" in found["experts"].reason


NVCC = Tool(name="nvcc", path="/cuda/bin/nvcc", version="12.4", architectures=["sm_90"])
OTHERS = [Tool(name="ninja", path="/bin/ninja", version="1.11.1"), Tool(name="c++", path="/bin/c++", version="12.2")]


def test_what_compiles_at_run_time_needs_its_tools_for_the_architecture(installed, v4):
    topk = by_step(steps(v4, "sm_120", installed))["top-k"]
    assert with_readiness(topk, v4, "sm_120", None, None).can_compile is None
    old = with_readiness(topk, v4, "sm_120", [NVCC, *OTHERS], None)
    assert (old.can_compile, old.lacking) == (False, ["nvcc 12.4 does not compile for sm_120"])
    new = NVCC.model_copy(update={"architectures": ["sm_120"]})
    assert with_readiness(topk, v4, "sm_120", [new, *OTHERS], None).can_compile is True
    none = with_readiness(topk, v4, "sm_120", [new, OTHERS[0]], None)
    assert none.lacking == ["SGLang JIT needs c++: not found"]


def test_a_shipped_kernel_needs_code_for_the_architecture(installed, v4):
    decode = by_step(steps(v4, "sm_90", installed))["sparse decode"]
    library = Binary(
        package="sgl-flash-mla", file="flash_mla/cuda.abi3.so", sha256="0", machine_code=["sm_100a"], ptx=[],
        serves=False, by="neither machine code nor PTX for sm_90",
    )  # fmt: skip
    judged = with_readiness(decode, v4, "sm_90", None, [library])
    assert judged.shipped_code_serves is False
    assert "flash_mla/cuda.abi3.so holds neither machine code nor PTX for sm_90" in judged.lacking
    legacy = library.model_copy(update={"file": "flash_mla/_C_legacy.abi3.so", "serves": True})
    assert with_readiness(decode, v4, "sm_90", None, [library, legacy]).shipped_code_serves is True


def test_an_architecture_that_the_table_was_not_written_for_is_unknown_where_it_matters(installed, v4):
    found = by_step(steps(v4, "sm_75", installed))
    assert found["sparse decode"].kernel is None
    assert found["sparse decode"].reason == "the table of deepseek_v4 was not written for sm_75"
    assert found["KV transfer"].kernel
    assert with_readiness(found["sparse decode"], v4, "sm_75", [], []) == found["sparse decode"]
