"""Kernels: what is compiled for the GPU, what compiles the rest, and whether the versions belong together."""

import re

from appliance.preflight.conditions import CUDA_PLAN, GPUS
from appliance.preflight.facts import Facts
from appliance.preflight.reading import (
    PACKAGES,
    arguments,
    capability,
    package,
    release,
    sm_120,
)
from appliance.preflight.rule import Found, Undecided, rule

FIRST_CUDA = {12: (12, 8), 10: (12, 8)}
"""The first CUDA that compiles for a major compute capability (CUDA Toolkit release notes)."""
FIRST_FOR_FAMILY_CODE = (12, 9)
"""sm_120f, which FlashInfer and SGLang compile for."""
CACHES = ("SGLANG_JIT_CACHE_DIR", "FLASHINFER_WORKSPACE_BASE", "TRITON_CACHE_DIR", "SGLANG_DG_CACHE_DIR")
LOCAL_CUDA = re.compile(r"\+cu(\d{2})(\d)")


def cuda_of_torch(facts: Facts) -> tuple[int, ...] | None:
    """The CUDA that torch was built with, by the report or by torch's own version."""
    said = release(facts.machine.software.torch_cuda) if facts.machine else None
    torch = package(facts, "torch")
    local = LOCAL_CUDA.search(torch[1]) if torch else None
    return said or ((int(local[1]), int(local[2])) if local else None)


@rule(
    "torch-without-gpu-code",
    "torch has no code for the GPU",
    "error",
    needs=["machine.gpus[].name", f"machine.software.torch_cuda|{PACKAGES}"],
    only_if=[GPUS],
    fix="install torch built with CUDA 12.8 or later: the engine's own pin, index cu130",
    reference="vllm-project/vllm#19741; NixOS/nixpkgs#406675",
)
def torch_without_gpu_code(facts: Facts):
    """ "no kernel image is available for execution on the device" at the first kernel of the first rank."""
    built = cuda_of_torch(facts)
    if built is None:
        raise Undecided("machine.software.torch_cuda")
    for gpu in facts.machine.gpus:
        needed = FIRST_CUDA.get((capability(gpu) or (0, 0))[0])
        if needed and built < needed:
            have, want = (".".join(map(str, version)) for version in (built[:2], needed))
            yield f"GPU {gpu.index} ({gpu.name}): torch is built with CUDA {have}; {want} is the first for it"


@rule(
    "step-cannot-run",
    "A step of the model has no kernel here",
    "error",
    needs=["engine.steps[].kernel"],
    only_if=[CUDA_PLAN],
    fix="appliance recon engine --model REF: the step's fallback and the variable that chooses it",
    reference="ambientlight/deepseek-v4-flash-sm120; NixOS/nixpkgs#406675",
)
def step_cannot_run(facts: Facts):
    """Found at the first request of that kind, or when the server warms up, after the weights are loaded."""
    for step in facts.engine.steps:
        reasons = list(step.lacking)
        reasons += ["the shipped binary has no code for it"] if step.shipped_code_serves is False else []
        reasons += ["what compiles it is not here"] if step.can_compile is False and not reasons else []
        if reasons:
            yield f"{step.step} on {facts.engine.arch}: {step.kernel}: {'; '.join(reasons)}"


@rule(
    "binary-without-gpu-code",
    "A shipped library has no code for the GPU",
    "note",
    needs=["engine.binaries[].serves"],
    only_if=[CUDA_PLAN],
    fix="nothing, as long as no step uses it: rule step-cannot-run says so",
    reference="NixOS/nixpkgs#406675",
)
def binary_without_gpu_code(facts: Facts):
    """No PTX is shipped with these libraries: what is not compiled for an architecture does not run on it."""
    for binary in facts.engine.binaries:
        if binary.serves is False:
            yield f"{binary.package}: {binary.file} has {', '.join(binary.machine_code) or 'nothing readable'}"


@rule(
    "jit-compiler-old",
    "The CUDA compiler is older than the GPU",
    "error",
    needs=["machine.gpus[].name", "engine.tools|machine.software.cuda_toolkit"],
    only_if=[GPUS],
    fix="put CUDA 13 (12.9 at least) first on PATH and in CUDA_HOME of the unit",
    reference="vllm-project/vllm#50705",
)
def jit_compiler_old(facts: Facts):
    """FlashInfer compiles while the server starts, with whatever nvcc comes first: initialisation dies.

    A warning where only the machine's own toolkit is known, which the engine's environment need not use.
    """
    gpus = sm_120(facts.machine)
    nvcc = next((t for t in (facts.engine.tools or []) if t.name == "nvcc"), None) if facts.engine else None
    found = release(nvcc.version if nvcc else facts.machine.software.cuda_toolkit)
    if gpus and found and found < FIRST_FOR_FAMILY_CODE:
        where = nvcc.path if nvcc else "the machine's toolkit"
        version = nvcc.version if nvcc else facts.machine.software.cuda_toolkit
        yield Found(f"{where}: CUDA {version}; sm_120f needs 12.9", severity=None if nvcc else "warning")


@rule(
    "jit-tools-missing",
    "Tools that compile kernels at run time are missing",
    "error",
    needs=["engine.tools", "engine.steps"],
    only_if=[CUDA_PLAN],
    fix="add nvcc, a C++ compiler and ninja to the service's path: they are run-time dependencies",
    reference="sgl-project/sglang#5002",
)
def jit_tools_missing(facts: Facts):
    """It works where somebody installed a toolchain by hand, and fails in a service with an empty PATH."""
    compiled = sorted({step.compiled_by for step in facts.engine.steps if step.compiled_by})
    for tool in facts.engine.tools:
        if compiled and tool.path is None:
            yield f"{tool.name}: {tool.reason}; wanted by {', '.join(compiled)}"


@rule(
    "jit-cache-shared",
    "Compiled kernels go to a cache that outlives the versions",
    "note",
    needs=["plan"],
    only_if=[CUDA_PLAN],
    fix="environment.SGLANG_JIT_CACHE_DIR = a directory named after the closure; warm one rank first",
    reference="flashinfer-ai/flashinfer#2708, vllm-project/vllm#49165",
)
def jit_cache_shared(facts: Facts):
    """After an upgrade old objects are loaded, and ranks that compile at once write into each other's files."""
    for worker in facts.plan.workers:
        if not set(CACHES) & worker.env.keys():
            yield f"worker {worker.name}: none of {', '.join(CACHES)} is set"


@rule(
    "tuned-tables-missing",
    "The engine has no tuned settings for this GPU",
    "note",
    needs=["machine.gpus[].name", "engine.tuned_devices"],
    only_if=[GPUS],
    fix="tune them (benchmark/kernels/fused_moe_triton of SGLang), or link the tables of the same chip under this name",
    reference="sgl-project/sglang#28189, sgl-project/sglang#25696",
)
def tuned_tables_missing(facts: Facts):
    """Tables go by the device's name: Max-Q, Workstation and Server editions of one chip count as three devices."""
    for name in dict.fromkeys(gpu.name for gpu in facts.machine.gpus if gpu.name):
        if name not in facts.engine.tuned_devices:
            chip = re.sub(r" (Max-Q )?(Workstation|Server) Edition$", "", name)
            others = [device for device in facts.engine.tuned_devices if device.startswith(chip)]
            yield f"{name}{f'; there are some for {others[0]}' if others else ''}"


@rule(
    "autotune-at-long-context",
    "Long contexts without a warm-up of that length",
    "note",
    needs=["plan", "machine.gpus[].name"],
    only_if=[CUDA_PLAN],
    fix="warm up with a ladder of prompts up to the context length before the target counts as ready",
    reference="vllm-project/vllm#56700",
)
def autotune_at_long_context(facts: Facts):
    """Autotuning of a shape that is first seen at 128K tokens has hung a whole group."""
    for worker in facts.plan.workers:
        wanted = arguments(worker).get("--context-length", "")
        if sm_120(facts.machine) and wanted.isdigit() and int(wanted) >= 131_072:
            yield f"worker {worker.name}: --context-length {wanted}"
