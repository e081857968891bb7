import pytest
from packaging.requirements import Requirement

from appliance.recon.engine.pins import PackageNotFoundError, pin, pins


@pytest.mark.parametrize(
    "requirement, installed, state",
    [
        ("torch==2.14.1", "2.14.1+cu130", "met"),
        ("torch==2.14.1", "2.13.0+cpu", "other version"),
        ("torch==2.14.1", None, "absent"),
        ("flash-attn-4>=4.0.0b18", "4.0.0b20", "met"),
        ("kernels<0.15,>=0.14.1", "0.15.0", "other version"),
        ("numpy", "2.0", "met"),
    ],
)
def test_a_requirement_is_met_absent_or_another_version(requirement, installed, state):
    assert pin(Requirement(requirement), installed).state == state


def test_the_pins_of_the_installed_engine():
    found = {pin.package: pin for pin in pins("sglang")}
    assert found["sglang-kernel"].wanted == "==0.4.10"
    assert found["flashinfer_python"].wanted == "==0.7.2" and found["flashinfer_python"].extras == ["cu13"]
    assert found["transformers"].state == "met"
    assert found["torch"].wanted == "==2.14.1"


def test_extras_and_other_platforms_are_left_out():
    found = {pin.package for pin in pins("sglang")}
    assert "diffusers" not in found  # of the extra "diffusion"
    assert "decord2" not in found or __import__("platform").machine() == "aarch64"


def test_a_package_that_is_not_installed_has_no_pins():
    with pytest.raises(PackageNotFoundError):
        pins("no-such-package-anywhere")
