import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.recon.model.schemes import Scheme, scheme_of, stored_bits
from appliance.recon.safetensors_header import BITS, TensorInfo


def tensor(dtype: str, *shape: int) -> TensorInfo:
    return TensorInfo(dtype, shape, 0, 0)


@pytest.mark.parametrize(
    "rows, columns, scale, group",
    [
        (576, 7168, (5, 56), "128x128"),  # the last block is not full
        (64, 256, (1, 2), "128x128"),
        (2304, 5120, (72, 160), "32x32"),
        (256, 256, (256, 1), "channel"),
        (256, 256, (256,), "channel"),
        (256, 256, (1,), "tensor"),
        (256, 256, (256, 2), "128"),
        (256, 256, (3, 7), None),
    ],
)
def test_what_shares_a_scale_of_float8(rows, columns, scale, group):
    stored = scheme_of({"weight": tensor("F8_E4M3", rows, columns), "scale": tensor("F32", *scale)})
    assert (stored.scheme.format, stored.scheme.group) == ("fp8", group)


def test_fused_experts_have_blocks_as_well():
    stored = scheme_of({"weight": tensor("F8_E4M3", 8, 512, 256), "scale": tensor("F32", 8, 4, 2)})
    assert stored.scheme.group == "128x128"


def test_blocks_of_gpt_oss():
    """[experts, rows, groups, 16 bytes] with one exponent a group of 32 values."""
    stored = scheme_of({"weight": tensor("U8", 32, 5760, 90, 16), "scale": tensor("U8", 32, 5760, 90)})
    assert stored.scheme[:2] == ("mxfp4", "32")
    assert stored.weights == 32 * 5760 * 2880


def test_an_int8_weight_is_not_taken_for_two_floats():
    stored = scheme_of({"weight": tensor("I8", 256, 256), "scale": tensor("F32", 256, 1)})
    assert stored.scheme[:2] == ("int8", "channel")
    assert stored.weights == 256 * 256


@pytest.mark.parametrize(
    "packed_columns, widths, form", [(32, {256}, "int4"), (64, {256}, "int8"), (64, set(), "int4")]
)
def test_the_models_own_widths_tell_int4_from_int8(packed_columns, widths, form):
    tensors = {"packed": tensor("I32", 128, packed_columns), "scale": tensor("BF16", 128, 2)}
    assert scheme_of(tensors, frozenset(widths)).scheme.format == form


def test_gptq_of_eight_bits():
    tensors = {
        "qweight": tensor("I32", 64, 512),
        "zeros": tensor("I32", 2, 128),
        "scale": tensor("F16", 2, 512),
    }
    stored = scheme_of(tensors)
    assert stored.scheme == Scheme("int8", "128", "fp16", "gptq")
    assert stored.weights == 256 * 512


@pytest.mark.parametrize(
    "scheme, bits",
    [
        (Scheme("mxfp4", "32"), 4.25),
        (Scheme("nvfp4", "16"), 4.5),
        (Scheme("int4", "128"), 4.125),
        (Scheme("fp8", "128x128"), 8),
        (Scheme("bf16"), 16),
        (Scheme("unknown"), None),
    ],
)
def test_bits_with_scales(scheme, bits):
    assert stored_bits(scheme) == bits


roles = st.sampled_from(["weight", "packed", "qweight", "scale", "zeros", "scale2", "input_scale", "bias", "shape"])
tensors = st.builds(
    TensorInfo,
    st.sampled_from(sorted(BITS)) | st.text(max_size=4),
    st.lists(st.integers(0, 2**40), max_size=4).map(tuple),
    st.just(0),
    st.just(0),
)


@given(st.dictionaries(roles, tensors))
def test_any_tensors_have_a_scheme_or_are_unknown(module):
    stored = scheme_of(module)
    assert stored.weights >= 0
    assert isinstance(stored.scheme.format, str)
