import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.documents.model import Component, Mtp
from appliance.recon.model.claims import claims_in, reconcile
from appliance.recon.model.tensor_cores import ARCHITECTURES, judge, uses

FORMATS = {"nvfp4": 4, "mxfp4": 4, "int4": 4, "fp8": 8, "int8": 8, "bf16": 16, "unknown": None}


def entry(component: str, form: str, activations: str | None = None, **more) -> Component:
    return Component(
        component=component,
        basis="tensors",
        format=form,
        bits=FORMATS[form],
        activations=activations,
        modules=1,
        parameters=more.pop("parameters", 1),
        **more,
    )


EXPERTS = entry("routed_experts", "nvfp4", "nvfp4 static", group="16", parameters=98)
ATTENTION = entry("attention", "fp8", "fp8 dynamic", group="128x128", parameters=2)


def verdict(claim: str, *components: Component, mtp: Mtp | None = None):
    (part,) = reconcile(claims_in(claim), list(components), mtp)
    return part


@pytest.mark.parametrize(
    "name, claims",
    [
        ("DeepSeek-V4-Flash-NVFP4", ["nvfp4"]),
        ("DeepSeek-V4-Flash-W4A16-FP8-MTP", ["w4a16", "fp8", "mtp"]),
        ("model_w8a8.int8", ["w8a8", "int8"]),
        ("Llama-3.1-8B-Instruct-AWQ-INT4", ["awq", "int4"]),
        ("V4-Flash-W4A16-noMTP", ["w4a16", "nomtp"]),
        ("V4-Flash-no-mtp", ["nomtp"]),
        ("Qwen3-32B", []),
        ("", []),
    ],
)
def test_what_a_name_claims(name, claims):
    assert claims_in(name) == claims


def test_a_claim_that_holds():
    part = verdict("NVFP4", EXPERTS)
    assert (part.verdict, part.words) == (
        "agrees",
        "nvfp4: routed_experts nvfp4 16 (activations nvfp4 static); 100.0 % of these weights are nvfp4",
    )


def test_a_claim_that_holds_for_a_part():
    part = verdict("NVFP4", EXPERTS, ATTENTION)
    assert part.verdict == "agrees in part"
    assert "not nvfp4: attention fp8 128x128 (activations fp8 dynamic); 98.0 % of these weights" in part.words


def test_a_claim_that_does_not_hold():
    part = verdict("nvfp4", ATTENTION)
    assert (part.verdict, part.words) == (
        "differs",
        "nothing is nvfp4: attention fp8 128x128 (activations fp8 dynamic)",
    )


def test_weights_alone_are_in_the_format():
    part = verdict("nvfp4", entry("dense_mlp", "nvfp4", "bf16"), ATTENTION)
    assert part.verdict == "agrees in part"
    assert "weight-only" in part.words and "not nvfp4: attention" in part.words


@pytest.mark.parametrize(
    "claim, component, expected",
    [
        ("w4a16", entry("routed_experts", "int4", "bf16"), "agrees"),
        ("w4a16", entry("routed_experts", "nvfp4", "nvfp4 static"), "differs"),
        ("w4a16", entry("routed_experts", "nvfp4", "bf16"), "agrees"),
        ("w8a8", entry("attention", "int8", "int8 dynamic"), "agrees"),
        ("w8a8", entry("attention", "fp8", "fp8 dynamic"), "agrees"),
        ("fp4", entry("routed_experts", "mxfp4"), "agrees"),
        ("gptq", entry("attention", "int4", "fp16", packing="gptq"), "agrees"),
        ("awq", entry("attention", "int4", "fp16", packing="gptq"), "differs"),
        ("fp8", entry("attention", "unknown"), "unknown"),
    ],
)
def test_kinds_of_claims(claim, component, expected):
    assert verdict(claim, component).verdict == expected


@pytest.mark.parametrize(
    "claim, count, basis, expected",
    [
        ("mtp", 1, "tensor names", "agrees"),
        ("mtp", 0, "tensor names", "differs"),
        ("mtp", None, "unknown", "unknown"),
        ("nomtp", 0, "tensor names", "agrees"),
        ("nomtp", 1, "tensor names", "differs"),
        ("nomtp", 1, "configuration", "unknown"),
    ],
)
def test_mtp(claim, count, basis, expected):
    assert verdict(claim, EXPERTS, mtp=Mtp(count=count, basis=basis)).verdict == expected


def test_mtp_layers_in_another_format_than_the_name_reads():
    parts = reconcile(
        claims_in("W4A16-FP8-MTP"), [ATTENTION, entry("mtp", "bf16", "bf16")], Mtp(count=1, basis="tensor names")
    )
    assert (parts[2].verdict, parts[2].words) == (
        "agrees in part",
        "1 MTP layer, by tensor names, stored as bf16: not as the rest of the name reads (w4a16, fp8)",
    )


@given(st.text())
def test_any_text_claims_something_or_nothing(text):
    for part in reconcile(claims_in(text), [EXPERTS, ATTENTION], None):
        assert part.words


@pytest.mark.parametrize(
    "form, activations, architecture, native, words",
    [
        ("nvfp4", "nvfp4 static", "sm_90", False, "no nvfp4 in these tensor cores"),
        ("nvfp4", "nvfp4 static", "sm_100", True, "multiplied as nvfp4 on both sides"),
        ("nvfp4", "nvfp4 static", "sm_120", True, "multiplied as nvfp4 on both sides"),
        ("nvfp4", "bf16", "sm_120", False, "unpacked to bf16 on the way: memory traffic of 4 bits"),
        ("int4", "bf16", "sm_100", False, "arithmetic at the rate of bf16"),
        ("mxfp4", None, "sm_120", True, "with float8 activations mxf8f6f4"),
        ("mxfp4", None, "sm_90", False, "unpacked to 16-bit or float8"),
        ("fp8", "fp8 dynamic", "sm_90", True, "multiplied as fp8"),
        ("int8", "int8 dynamic", "sm_120", True, "multiplied as int8"),
        ("bf16", "bf16", "sm_90", True, "multiplied as bf16"),
    ],
)
def test_what_tensor_cores_do(form, activations, architecture, native, words):
    found = judge(form, activations, architecture)
    assert found.native is native
    assert words in found.words


def test_each_architecture_and_format_once_with_a_source():
    found = uses(
        [EXPERTS, ATTENTION, entry("shared_experts", "fp8", "fp8 dynamic"), entry("embedding", "bf16", "bf16")]
    )
    assert [use.architecture for use in found] == [name for name in ARCHITECTURES for _ in range(2)]
    assert found[1].components == ["attention", "shared_experts"]
    assert all("PTX ISA" in use.source for use in found)
