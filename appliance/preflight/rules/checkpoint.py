"""The checkpoint: whether all of it is there, and is what its name says."""

from appliance.preflight.conditions import PLAN
from appliance.preflight.facts import Facts
from appliance.preflight.reading import capability
from appliance.preflight.rule import Found, rule


@rule(
    "checkpoint-broken",
    "The checkpoint's files are not whole",
    "error",
    needs=["model.integrity"],
    fix="hf download REPO --force-download FILE; then appliance recon model REF --hash",
    reference="QwenLM/Qwen3-VL#264; safetensors, format",
)
def checkpoint_broken(facts: Facts):
    """A shard that is shorter than its header says loads through a memory map, and the model talks nonsense."""
    for problem in facts.model.integrity.problems:
        yield f"{problem.file}: {problem.words}"


@rule(
    "planned-model-incomplete",
    "The planned model's folder is incomplete on the machine",
    "error",
    needs=["plan", "machine.models"],
    only_if=[PLAN],
    fix="hf download REPO --local-dir FOLDER",
    reference="huggingface_hub, cache layout",
)
def planned_model_incomplete(facts: Facts):
    """Shards missing, pointers of Git LFS in place of weights, downloads that never ended."""
    for folder in facts.machine.models:
        if folder.path == facts.plan.model.path and folder.complete is False:
            yield f"{folder.path}: {'; '.join(folder.problems)}"


@rule(
    "name-claims-other-weights",
    "The checkpoint's name claims what its weights are not",
    "warning",
    needs=["model"],
    fix="appliance recon model REF: what each component really is",
    reference="vllm-project/vllm#41834",
)
def name_claims_other_weights(facts: Facts):
    """Memory, kernels and speculation are chosen by the name: FP8 copies of 4-bit models, MTP that was left out."""
    for claim in facts.model.claims:
        if claim.verdict == "differs":
            yield f"{claim.claim}: {claim.words}"


@rule(
    "no-tensor-core-format",
    "The GPUs' tensor cores do not multiply the checkpoint's format",
    "note",
    needs=["model.tensor_cores", "machine.gpus[].name"],
    fix="a checkpoint in a format that they multiply, or accept that weights are converted first",
    reference="NVIDIA, PTX ISA: mma",
)
def no_tensor_core_format(facts: Facts):
    """The weights are smaller and the arithmetic is not faster: prefill runs at the speed of the wider type."""
    wanted = {f"sm_{major}{minor}" for gpu in facts.machine.gpus for major, minor in [capability(gpu) or (0, 0)]}
    for use in facts.model.tensor_cores:
        if use.architecture in wanted and not use.native:
            yield Found(f"{use.format} on {use.architecture} ({', '.join(use.components)}): {use.words}")
