import _socket
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.recon.engine.cuobjdump import Unreadable, architectures, find_cuobjdump, parse_listing

LISTING = """
ELF file    1: common_ops.abi3.1.sm_80.cubin
ELF file    2: common_ops.abi3.2.sm_120a.cubin
ELF file   13: common_ops.abi3.13.sm_90a.cubin
ELF file   14: common_ops.abi3.14.sm_90a.cubin

PTX file    1: common_ops.abi3.1.sm_90.ptx
cuobjdump info    : No PTX file found to extract from '/x/sm_70.so'. You may try with -all option.
"""


def test_architectures_of_a_listing_each_once_in_order():
    assert parse_listing(LISTING) == (["sm_80", "sm_90a", "sm_120a"], ["sm_90"])


def test_names_with_spaces_dots_and_carriage_returns():
    assert parse_listing("ELF file    1: my lib.sm_70.so.1.sm_100f.cubin\r\n") == (["sm_100f"], [])


@given(st.text())
def test_any_text_is_a_listing_or_none(text):
    for targets in parse_listing(text):
        assert all(target.startswith(("sm_", "compute_")) for target in targets)


@given(st.lists(st.sampled_from(["sm_80", "sm_90a", "sm_100f", "sm_120"])))
def test_whatever_is_listed_is_found(targets):
    text = "".join(f"ELF file {n:4}: lib.{n}.{target}.cubin\n" for n, target in enumerate(targets, 1))
    assert set(parse_listing(text)[0]) == set(targets)


@pytest.mark.parametrize("unit", ["ELF file 1: ", "ELF file 1: .sm_9", "ELF file 1: x.1.sm_90.cubin\n", ".sm_90"])
def test_long_output_is_read_in_time_linear_in_its_size(unit):
    start = time.perf_counter()
    parse_listing(unit * (2_000_000 // len(unit)))
    assert time.perf_counter() - start < 5


@pytest.fixture
def tool():
    found = find_cuobjdump()
    if found is None:
        pytest.skip("no cuobjdump here")
    return found


def test_a_library_without_gpu_code_has_none(tool):
    assert architectures(tool, Path(_socket.__file__), 30) == ([], [])


def test_a_file_that_is_no_library_is_refused_in_the_tools_own_words(tool, tmp_path):
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(Unreadable, match="cuobjdump fatal"):
        architectures(tool, tmp_path / "text.so", 30)


def test_a_tool_that_fails_in_another_way_is_told_in_its_own_words(tmp_path):
    fake = tmp_path / "cuobjdump"
    fake.write_text("#!/bin/sh\necho 'cuobjdump fatal   : Memory allocation failure' >&2\nexit 1\n")
    fake.chmod(0o755)
    with pytest.raises(Unreadable, match="Memory allocation failure"):
        architectures(fake, fake, 10)
