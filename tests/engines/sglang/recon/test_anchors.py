import pytest
from pydantic import ValidationError

from appliance.engines.sglang.recon.anchors import Anchor, locate
from appliance.engines.sglang.recon.source import SourceTree, Unknown

CODE = """
LIMIT = 64   # tokens

class Backend:
    def choose(self, q):
        if platform().is_new and q.shape[0] > LIMIT:
            from kernels import new as fn
        elif old():
            fn = "old"
        else:
            fn = None
        return fn
"""


@pytest.fixture
def tree(tmp_path) -> SourceTree:
    (tmp_path / "m.py").write_text(CODE)
    return SourceTree(tmp_path)


def found(tree: SourceTree, **wanted) -> int:
    return int(locate(Anchor(file="m.py", **wanted), tree).rsplit(":", 1)[1])


def problem(tree: SourceTree, **wanted) -> str:
    with pytest.raises(Unknown) as error:
        locate(Anchor(file="m.py", **wanted), tree)
    return str(error.value)


def test_symbols_code_and_tests_are_found_with_their_lines(tree):
    assert found(tree, symbol="Backend.choose") == 5
    assert found(tree, code="LIMIT = 64") == 2
    assert found(tree, within="Backend.choose", code="from kernels import new as fn") == 7
    assert found(tree, within="Backend.choose", code="return fn") == 12
    assert found(tree, within="Backend.choose", test="old()") == 8


def test_spaces_quotes_and_comments_do_not_count(tree):
    assert found(tree, within="Backend.choose", code="fn   =  'old' # a comment") == 9
    assert found(tree, within="Backend.choose", test="(platform().is_new) and (q.shape[0]>LIMIT)") == 6


def test_the_innermost_conditions_must_be_those_given(tree):
    first = "platform().is_new and q.shape[0] > LIMIT"
    assert found(tree, within="Backend.choose", code='fn = "old"', under=["old()"]) == 9
    assert found(tree, within="Backend.choose", code="fn = None", under=[f"else {first}", "else old()"]) == 11
    assert "stands under other conditions now" in problem(tree, within="Backend.choose", code="fn = None", under=["x"])


def test_a_changed_gate_or_a_symbol_that_is_gone_says_so(tree):
    assert problem(tree, within="Backend.choose", test="platform().is_new").endswith(
        "m.py Backend.choose: the gate `platform().is_new` is not there any more"
    )
    assert "has no Backend.pick any more" in problem(tree, symbol="Backend.pick")
    assert "has no Frontend any more" in problem(tree, within="Frontend", code="LIMIT = 64")


def test_code_counts_only_directly_in_the_definition_that_is_named(tree):
    assert "is not there any more" in problem(tree, code="return fn")


@pytest.mark.parametrize("parts", [{}, {"symbol": "A", "code": "b"}])
def test_an_anchor_states_exactly_one_thing(parts):
    with pytest.raises(ValidationError, match="exactly one of symbol, code and test"):
        Anchor(file="m.py", **parts)
