"""Versions: whether packages belong together, to the GPU and to the plan."""

import re

from appliance.preflight.conditions import CUDA_PLAN, GPUS, PLAN
from appliance.preflight.facts import Facts
from appliance.preflight.reading import (
    ENVIRONMENTS,
    PACKAGES,
    environments,
    package,
    release,
)
from appliance.preflight.rule import rule

CORE = {
    "torch",
    "triton",
    "transformers",
    "flashinfer-python",
    "sglang-kernel",
    "sgl-kernel",
    "sgl-deep-gemm",
    "sgl-flash-mla",
    "tilelang",
    "apache-tvm-ffi",
    "nvidia-cutlass-dsl",
}


@rule(
    "versions-do-not-belong-together",
    "Packages are not those that the engine was built with",
    "error",
    needs=["engine.pins"],
    only_if=[CUDA_PLAN],
    fix="install the engine's own pins: requirements/, or the flake's engine environment",
    reference="tokenspeed#284, kvcache-ai/sglang#65, sgl-project/sglang#6160",
)
def versions_do_not_belong_together(facts: Facts):
    """Undefined symbols, caches of another ABI, or an old FlashInfer that drops MXFP4 without a word."""
    for pin in facts.engine.pins:
        if pin.state != "met" and pin.package.lower().replace("_", "-") in CORE:
            yield f"{pin.package}: {pin.installed or 'not installed'}; SGLang {facts.engine.version} wants {pin.wanted}"


@rule(
    "torch-is-nightly",
    "Compiled packages beside a nightly torch",
    "warning",
    needs=[PACKAGES],
    fix="install the release of torch that sgl-kernel was built against",
    reference="sgl-project/sglang#5100",
)
def torch_is_nightly(facts: Facts):
    """A nightly's symbols change from day to day: "undefined symbol" when the kernels' library is loaded."""
    torch, kernel = package(facts, "torch"), package(facts, "sglang-kernel", "sgl-kernel")
    if torch and kernel and ".dev" in torch[1]:
        yield f"torch {torch[1]}, {kernel[0]} {kernel[1]}"


@rule(
    "deepgemm-is-not-the-engines",
    "DeepGEMM is not the engine's own build",
    "warning",
    needs=[PACKAGES],
    only_if=[GPUS],
    fix="pip uninstall deep-gemm; install the engine's pin of sgl-deep-gemm",
    reference="deepseek-ai/DeepGEMM#318",
)
def deepgemm_is_not_the_engines(facts: Facts):
    """ "Unknown recipe" on sm_120: upstream's build does not know it, the engine's does. 0.2.5 lacks a function."""
    other = package(facts, "deep-gemm", "deepgemm")
    if other:
        yield f"{other[0]} {other[1]} is installed"
    own = package(facts, "sgl-deep-gemm")
    if own and (release(own[1]) or (0,)) >= (0, 2, 5):
        yield f"sgl-deep-gemm {own[1]}: fp8_paged_mqa_logits is gone since 0.2.5"


@rule(
    "cuda-libraries-shadowed",
    "A compatibility libcuda may come before the driver's",
    "warning",
    needs=[ENVIRONMENTS],
    fix="take the compat folder out of LD_LIBRARY_PATH; on NixOS the driver's is in /run/opengl-driver/lib",
    reference="local-inference-lab/rtx6kpro, CUDA does not initialise; NVIDIA, CUDA compatibility",
)
def cuda_libraries_shadowed(facts: Facts):
    """CUDA error 803 or 804, or no device at all, while nvidia-smi is fine. `--probe` shows which one resolves."""
    for where, env in environments(facts):
        folders = env.get("LD_LIBRARY_PATH", "").split(":")
        shadows = [folder for folder in folders if re.search(r"/compat(/|$)|/stubs(/|$)", folder)]
        if shadows:
            yield f"{where}: LD_LIBRARY_PATH has {', '.join(shadows)}"


@rule(
    "engine-is-another",
    "The installed engine is not the planned one",
    "error",
    needs=["plan", "engine.version"],
    only_if=[PLAN],
    fix="make the plan again, or install what it was made for",
    reference="llm-d/llm-d#499",
)
def engine_is_another(facts: Facts):
    """Arguments, defaults and the transfer protocol change from release to release."""
    if facts.engine.version != facts.plan.engine.version:
        yield f"SGLang {facts.engine.version}; the plan is for {facts.plan.engine.version}"


@rule(
    "engine-unstamped",
    "A build that cannot be told from another",
    "warning",
    needs=[PACKAGES],
    fix="build from a clean commit, and let the version say which",
    reference="Lei-010/hermes-agent, commit unknown",
)
def engine_unstamped(facts: Facts):
    """A figure or a fault of a tree with local changes cannot be had again."""
    for name in ("sglang", "vllm", "sglang-kernel", "sgl-kernel", "flashinfer-python"):
        found = package(facts, name)
        if name == "sglang" and facts.engine and facts.engine.version:
            found = (name, facts.engine.version)
        if found and re.search(r"\+.*\bd20\d{6}|unknown|^0\.0\.0", found[1]):
            yield f"{found[0]} {found[1]}"
