import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.engines.sglang.recon.capability import UNKNOWN, Evaluator
from appliance.recon.engine.arch import Arch

PREDICATES = {"is_sm120_supported": True, "is_sm100_supported": False}
PLATFORM = {"is_sm120": True, "is_blackwell": True, "is_sm90": False}
ON_120 = Evaluator(Arch(12, 0), PREDICATES, PLATFORM)


def value(code: str, evaluator: Evaluator = ON_120) -> object:
    return evaluator.value(ast.parse(code, mode="eval").body)


@pytest.mark.parametrize(
    "code, expected",
    [
        ("is_sm120_supported()", True),
        ("not is_sm100_supported()", True),
        ("get_platform().is_blackwell and not get_platform().is_sm90", True),
        ("torch.cuda.get_device_capability() == (12, 0)", True),
        ("torch.cuda.get_device_capability()[0] >= 10", True),
        ("torch.cuda.get_device_capability(dev).major in (9, 10)", False),
        ("get_device_sm() // 10 in [10, 11]", False),
        ("get_device_sm()", 120),
        ("9 <= sm_major < 12", False),
        ("is_hip() or is_sm120_supported()", True),
        ("x and is_sm100_supported()", False),
        ("x or is_sm120_supported()", True),
        ("tuple(map(int, x)) >= (12, 8)", UNKNOWN),
        ("x and is_sm120_supported()", UNKNOWN),
        ("is_sm100_supported() or x", UNKNOWN),
        ("x", UNKNOWN),
        ("1 / 0", UNKNOWN),
        ("(1, 2)[5]", UNKNOWN),
        ("'a' < 1", UNKNOWN),
        ("8 if is_sm120_supported() else 4", 8),
    ],
)
def test_what_expressions_come_to_on_sm_120(code, expected):
    assert value(code) is expected or value(code) == expected


def test_the_same_name_is_two_things_as_a_function_and_on_the_platform():
    on_121 = Evaluator(Arch(12, 1), {"is_sm120": False}, {"is_sm120": True})
    assert value("is_sm120()", on_121) is False
    assert value("get_platform().is_sm120", on_121) is True


expressions = st.recursive(
    st.sampled_from(["x", "is_sm120_supported()", "is_sm100_supported()", "sm_major", "12", "get_device_sm()", "None"]),
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("(not {})".format, inner),
        st.builds("({} == {})".format, inner, inner),
        st.builds("({} < {})".format, inner, inner),
        st.builds("({} in ({}, 1))".format, inner, inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
    ),
)


@given(expressions, st.sampled_from([0, 12, True, None]))
def test_a_known_value_is_the_one_that_python_finds_whatever_is_open(code, x):
    known = value(code)
    if known is UNKNOWN:
        return
    names = {"x": x, "sm_major": 12, "is_sm120_supported": lambda: True, "is_sm100_supported": lambda: False}
    try:
        actual = eval(code, names | {"get_device_sm": lambda: 120})
    except TypeError:
        return
    assert bool(known) == bool(actual)
