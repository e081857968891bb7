import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from appliance.bench.profile.classes import class_of, patterns

SUFFIXES = (".py", ".cuh", ".cu")
ROWS = [row for row in patterns() if row.kernel]


@pytest.fixture(scope="module")
def engine() -> Path:
    found = find_spec("sglang")
    if found is None:
        pytest.skip("SGLang is not installed")
    return Path(found.origin).parent


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.kernel)
def test_the_kernel_stands_in_the_pinned_engine_and_falls_into_its_class(row, engine):
    place = engine / row.file
    sources = [place] if place.is_file() else [path for path in place.rglob("*") if path.suffix in SUFFIXES]
    assert any(re.search(rf"\b{row.kernel}\b", path.read_text(errors="replace")) for path in sources), place
    assert class_of(row.kernel) == row.kernel_class


def test_a_row_says_where_its_name_comes_from():
    assert all((row.library is None) != (row.kernel is None) for row in patterns())
    assert all(row.file for row in ROWS)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "communication"),
        ("nvjet_hsh_64x8_64x16_4x1_v_bz_TNN", "GEMM"),
        ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float>", "memory"),
        ("void deep_gemm::sm90_fp8_paged_mqa_logits<64u>", "indexer"),
        ("void cutlass::device_kernel<flash::FlashAttnFwdSm90<...>>", "attention"),
        ("triton_poi_fused_add_0", "other"),
        ("", "other"),
    ],
)
def test_a_name_of_a_library_or_of_nobody(name, expected):
    assert class_of(name) == expected
