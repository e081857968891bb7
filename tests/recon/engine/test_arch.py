import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import InputError
from appliance.recon.engine.arch import Arch, compiles_for, runs_on


@pytest.mark.parametrize("text", ["sm_120", "SM_120", "120", "12.0", "sm120", "sm_120a", "sm_120f", "compute_120"])
def test_an_architecture_is_read_in_all_its_spellings(text):
    assert Arch.parse(text) == Arch(12, 0)
    assert Arch.parse(text).name == "sm_120"


@pytest.mark.parametrize("text", ["", "sm_", "blackwell", "12", "sm_1", "sm_9999", "-120", "sm_120x", "0.0"])
def test_what_is_no_architecture_is_refused(text):
    with pytest.raises(InputError, match="is no GPU architecture; expected one such as sm_120"):
        Arch.parse(text)


@given(st.text())
def test_any_text_is_read_or_refused(text):
    try:
        assert Arch.parse(text).major >= 3
    except InputError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    "target, arch, runs",
    [
        ("sm_80", "8.6", True),  # a later minor version of the same major
        ("sm_86", "8.0", False),
        ("sm_90", "12.0", False),  # another major version
        ("sm_90a", "9.0", True),
        ("sm_90a", "12.0", False),
        ("sm_100a", "10.3", False),  # `a` is for that one alone
        ("sm_100f", "10.3", True),  # `f` is for its family
        ("sm_103f", "10.0", False),
        ("sm_120", "12.1", True),
        ("sm_120a", "12.0", True),
        ("sm_120a", "12.1", False),
        ("sm_120f", "12.1", True),
        ("sm_100f", "12.0", False),
        ("nonsense", "12.0", False),
    ],
)
def test_which_machine_code_runs_where(target, arch, runs):
    assert runs_on(target, Arch.parse(arch)) is runs


@pytest.mark.parametrize(
    "target, arch, compiles",
    [
        ("compute_90", "12.0", True),
        ("sm_120", "12.1", True),
        ("compute_120", "9.0", False),
        ("compute_90a", "12.0", False),
        ("compute_100f", "10.3", True),
        ("compute_100f", "12.0", False),
    ],
)
def test_which_ptx_the_driver_can_compile_where(target, arch, compiles):
    assert compiles_for(target, Arch.parse(arch)) is compiles
