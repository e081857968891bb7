import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.cpu_list import as_text, parse


@pytest.mark.parametrize("text, cpus", [("0-3,8", {0, 1, 2, 3, 8}), ("5", {5}), ("", set()), ("0,2\n", {0, 2})])
def test_parse(text, cpus):
    assert parse(text) == cpus


@given(st.sets(st.integers(0, 4096)))
def test_what_is_written_reads_back(cpus):
    assert parse(as_text(cpus) if cpus else "") == cpus
