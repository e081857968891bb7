import pytest

from appliance.hardware.gpu_model import gpu_model
from appliance.plan import bounds
from tests.helpers.gpu_machines import RTX, v4_flash

V4, SHEET = v4_flash(), gpu_model(RTX)
EXPERTS = 277_025_390_592 / 2 * (1 + 1 / 16)
"""Bytes of V4-Flash's routed experts: four bits a weight and a scale for each 32."""


def test_the_bytes_of_one_tokens_path_are_all_but_the_experts_that_it_does_not_take():
    others = sum(
        part.bytes for part in V4.quantisation if part.component not in {"routed_experts", "mtp", "embedding", "vision"}
    )
    assert bounds.active_bytes(V4) == pytest.approx(others + EXPERTS * 6 / 256)


def test_decode_is_bytes_over_bandwidth():
    step, rate = bounds.decode(V4, SHEET, 4)
    assert step.value == pytest.approx(bounds.active_bytes(V4) / 4 / 1597e9 * 1e3, rel=0.01)
    assert (step.at, step.unit, rate.at, rate.unit) == ("least", "ms", "most", "tok/s")
    assert rate.value == pytest.approx(1e3 / step.value, rel=0.01)


def test_prefill_is_arithmetic_over_flops_in_the_fastest_format_of_the_weights():
    (found,) = bounds.prefill(V4, SHEET, 4)
    assert found.value == pytest.approx(4 * 2000e12 / 2 / V4.parameters_active, rel=0.01)
    assert "fp4" in found.formula
    (hopper,) = bounds.prefill(V4, gpu_model("NVIDIA H200"), 1)
    assert "fp8" in hopper.formula  # no fp4 in its tensor cores


def test_a_latent_cache_crosses_whole_on_every_rank():
    (found,) = bounds.transfer(V4, 50.0, "PCIe", 4)
    assert found.value == pytest.approx(32768 * 3850.25 / 50e9 * 1e3, rel=0.01)


def test_one_rank_has_nothing_to_reduce():
    assert bounds.all_reduce(V4, 50.0, "PCIe", 1) == []
    (found,) = bounds.all_reduce(V4, 50.0, "PCIe", 4)
    assert found.value == pytest.approx(50e9 / (2 * 43 * 4096 * 2 * 2 * 3 / 4), rel=0.01)


def test_without_a_data_sheet_or_a_link_there_is_no_bound():
    assert bounds.decode(V4, None, 4) == bounds.prefill(V4, None, 4) == []
    assert bounds.transfer(V4, None, "?", 4) == bounds.all_reduce(V4, None, "?", 4) == []
