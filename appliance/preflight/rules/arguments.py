"""The planned arguments: what the engine does not know, what contradicts itself, what the model or the GPU forbids."""

from difflib import get_close_matches

from appliance.engines.sglang.command import FIELD_OF_FLAG
from appliance.preflight.conditions import CUDA_PLAN, PLAN
from appliance.preflight.facts import Facts
from appliance.preflight.reading import ENVIRONMENTS, arguments, environments, number, sm_120
from appliance.preflight.rule import Found, rule

NOT_FOR_SM_120 = ("fa3", "flashmla")
"""Attention backends whose shipped binaries hold no code for sm_120 (cuobjdump of flash_ops and flashmla_ops)."""
FORBIDDEN_ON_SM_120 = {
    "--enable-two-batch-overlap": "two streams at once crash while graphs are captured",
    "--enable-single-batch-overlap": "two streams at once crash while graphs are captured",
    "--cuda-graph-bs-prefill": "prefill graphs crash while they are captured",
    "--cuda-graph-max-bs-prefill": "prefill graphs crash while they are captured",
}


@rule(
    "unknown-flags",
    "Arguments that the engine does not know",
    "error",
    needs=["plan", "engine.options"],
    only_if=[PLAN],
    fix="appliance recon engine --json | jq '.options[].flag'",
    reference="Lei-010/hermes-agent, flags of another engine",
)
def unknown_flags(facts: Facts):
    """A flag of another engine or release ends the server after the minutes that it takes to import everything."""
    choices = {option.flag: option.choices for option in facts.engine.options}
    known = choices.keys() | FIELD_OF_FLAG.keys()
    for worker in facts.plan.workers:
        for flag, value in arguments(worker).items():
            if value and choices.get(flag) and value not in choices[flag]:
                yield f"worker {worker.name}: {flag} {value}; the engine knows {', '.join(choices[flag])}"
            if flag not in known and sum(name.startswith(flag) for name in known) != 1:  # as argparse abbreviates
                close = get_close_matches(flag, known, n=1)
                yield f"worker {worker.name}: {flag}{f'; the engine has {close[0]}' if close else ''}"


@rule(
    "context-beyond-model",
    "A context longer than the model's",
    "error",
    needs=["plan", "model.context_length"],
    only_if=[PLAN],
    fix="settings.context-length = the model's at most;",
    reference="Lei-010/hermes-agent, the client says 1M and the server 409,600",
)
def context_beyond_model(facts: Facts):
    """The engine refuses to start, or with its override serves positions that the model was never trained on."""
    longest = max(facts.model.context_length, facts.model.context_length_scaled or 0)
    for worker in facts.plan.workers:
        wanted = number(arguments(worker).get("--context-length"))
        if wanted and wanted > longest:
            yield f"worker {worker.name}: --context-length {wanted:.0f}, the model's is {longest}"


@rule(
    "attention-backend-not-for-gpu",
    "An attention backend without kernels for sm_120",
    "error",
    needs=["plan", "machine.gpus[].name"],
    only_if=[CUDA_PLAN],
    fix="leave the backend to the engine (dsv4 for DeepSeek-V4), or choose flashinfer or triton",
    reference="ambientlight/deepseek-v4-flash-sm120",
)
def attention_backend_not_for_gpu(facts: Facts):
    """ "Unsupported architecture for sparse decode", or no kernel image, at the first request."""
    if not sm_120(facts.machine):
        return
    for worker in facts.plan.workers:
        for flag, value in arguments(worker).items():
            if flag.endswith("attention-backend") and value in NOT_FOR_SM_120:
                yield f"worker {worker.name}: {flag} {value}"


@rule(
    "forbidden-on-gpu",
    "Arguments that crash on sm_120",
    "warning",
    needs=["plan", "machine.gpus[].name"],
    only_if=[CUDA_PLAN],
    fix="leave it out",
    reference="Lei-010/hermes-agent; sgl-project/sglang#28025; SGLang 0.5.23, PD trap of the fp4 indexer",
)
def forbidden_on_gpu(facts: Facts):
    """Crashes while CUDA graphs are captured, or at the first forward pass, after minutes of loading."""
    if not sm_120(facts.machine):
        return
    for worker in facts.plan.workers:
        args = arguments(worker)
        for flag, why in FORBIDDEN_ON_SM_120.items():
            if flag in args:
                yield f"worker {worker.name}: {flag}: {why}"
        indexer = worker.env.get("SGLANG_OPT_USE_TILELANG_INDEXER", "1")
        if "--enable-deepseek-v4-fp4-indexer" in args and indexer != "0":
            why = "raises at the first forward pass unless SGLANG_OPT_USE_TILELANG_INDEXER=0"
            yield f"worker {worker.name}: --enable-deepseek-v4-fp4-indexer: {why}"


@rule(
    "custom-chat-template",
    "A chat template of one's own",
    "warning",
    needs=["plan"],
    only_if=[PLAN],
    fix="leave it out: the checkpoint's own template knows where reasoning begins and ends",
    reference="ambientlight/rtx-pro-6000-bench",
)
def custom_chat_template(facts: Facts):
    """Reasoning and tool calls are found by the template's markers: with another one they end up in the answer."""
    for worker in facts.plan.workers:
        for flag in ("--chat-template", "--hf-chat-template-name"):
            if flag in arguments(worker):
                yield f"worker {worker.name}: {flag} {arguments(worker)[flag]}"


@rule(
    "chat-template-missing",
    "The checkpoint brings no chat template",
    "warning",
    needs=["model.chat_template"],
    fix="serve /v1/completions only, or give --chat-template",
    reference="sgl-project/sglang#3385",
)
def chat_template_missing(facts: Facts):
    """The chat endpoint answers with an error, or with a default template that the model was not trained on."""
    given = any("--chat-template" in arguments(worker) for worker in facts.plan.workers) if facts.plan else False
    if facts.model.chat_template is False and not given:
        yield f"{facts.model.path}: none in tokenizer_config.json, no chat_template file"


@rule(
    "device-order-wrong",
    "CUDA_DEVICE_ORDER has a value that it does not know",
    "error",
    needs=[ENVIRONMENTS],
    fix="CUDA_DEVICE_ORDER=PCI_BUS_ID",
    reference="vllm-project/vllm#28572; NVIDIA, CUDA C programming guide: environment variables",
)
def device_order_wrong(facts: Facts):
    """CUDA takes anything else for FASTEST_FIRST: GPU 0 is then another card than in every table of this machine."""
    for where, env in environments(facts):
        value = env.get("CUDA_DEVICE_ORDER")
        if value is not None and value not in ("PCI_BUS_ID", "FASTEST_FIRST"):
            yield f"{where}: CUDA_DEVICE_ORDER={value}"
        elif value == "FASTEST_FIRST" and where.startswith("worker"):
            yield Found(f"{where}: CUDA_DEVICE_ORDER={value}; the plan counts in bus order", severity="warning")
