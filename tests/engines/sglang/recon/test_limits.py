import ast

import pytest

from appliance.engines.sglang.recon.family import Limit, load
from appliance.engines.sglang.recon.limits import limit, limits, numbers
from appliance.engines.sglang.recon.source import SourceTree, Unknown

POLICY = """
MAX_TOKENS = 64
COMPUTED = MAX_TOKENS * 2


class Envelope:
    heads: frozenset[int] = frozenset({32, 8, 16})
"""


@pytest.fixture
def tree(tmp_path) -> SourceTree:
    (tmp_path / "policy.py").write_text(POLICY)
    return SourceTree(tmp_path)


def read(tree: SourceTree, variable: str, within: str = ""):
    return limit(Limit(name="n", package="p", file="policy.py", within=within, variable=variable), tree)


def test_numbers_and_sets_of_numbers_are_read_with_their_place(tree):
    assert read(tree, "MAX_TOKENS").values == [64]
    heads = read(tree, "heads", within="Envelope")
    assert heads.values == [8, 16, 32]
    assert heads.where.endswith("/policy.py:7")


def test_what_is_computed_or_gone_has_a_reason(tree):
    assert "is not a number" in read(tree, "COMPUTED").reason
    assert "heads is not there any more" in read(tree, "heads").reason


@pytest.mark.parametrize("code", ["'x'", "{}", "f()", "frozenset()", "[1, 'a']", "x"])
def test_other_values_are_unknown(code):
    with pytest.raises(Unknown):
        numbers(ast.parse(code, mode="eval").body)


def test_a_library_that_is_not_installed_is_the_reason():
    found = limits(load("deepseek_v4"), "sm_120")
    assert len(found) == 3
    assert all(item.values or item.reason == "flashinfer is not installed" for item in found)
    assert limits(load("deepseek_v4"), "sm_90") == []
