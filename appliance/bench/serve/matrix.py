"""What is asked: the matrix of loads and lengths, and the mixes."""

from dataclasses import dataclass, field

from appliance.documents import Slo, Workload

CONCURRENCIES = [1, 2, 4, 8, 16, 32, 64]
INPUTS = [512, 8192, 32768, 65536, 131072]
OUTPUTS = [256]
TURNS = 4
BYTES = 1000
"""Vocabularies below this are of single bytes and a few markers."""
TEXT_LONGER, BYTES_LONGER = 1.1, 2.2
"""Tokens of a prompt of random tokens, once it was text, for each that was asked for; the chat template included."""
MIXES = ("tail isolation", "multi-turn", "structured output")


@dataclass(frozen=True)
class Matrix:
    """The wishes of a run."""

    concurrencies: list[int] = field(default_factory=lambda: CONCURRENCIES)
    request_rates: list[float] = field(default_factory=list)
    """Requests a second, in place of concurrencies."""
    inputs: list[int] = field(default_factory=lambda: INPUTS)
    outputs: list[int] = field(default_factory=lambda: OUTPUTS)
    mixes: tuple[str, ...] = MIXES
    requests_each: int = 4
    """Requests for each one in flight; with a rate, that many seconds' worth times ten."""
    slo: Slo | None = None


def workloads(matrix: Matrix, context: int | None, vocabulary: int | None = None) -> tuple[list[Workload], list[str]]:
    """The workloads of a matrix, shortest first, and what was left out because the model's context is shorter.

    context: tokens of the longest request that every topology takes; None: not known. Mixes take the shortest input
    and, for the long requests of tail isolation, the longest. Prompts travel as text, which a tokenizer need not take
    apart as it was made: some room is left, and much where the vocabulary is of single bytes.
    """
    longer = BYTES_LONGER if vocabulary is not None and vocabulary < BYTES else TEXT_LONGER
    room = context if context is not None else max(matrix.inputs) * longer + max(matrix.outputs)
    inputs = sorted(length for length in matrix.inputs if length * longer + max(matrix.outputs) <= room)
    left_out = [f"input {n}: longer than the context of {context} tokens" for n in matrix.inputs if n not in inputs]
    found = [
        Workload(
            name="plain", input_tokens=length, output_tokens=output, requests=requests(load, matrix), slo=matrix.slo
        ).model_copy(update=load)
        for length in inputs
        for output in sorted(matrix.outputs)
        for load in loads(matrix)
    ]
    for mix in matrix.mixes if inputs else ():
        made = mixed(mix, matrix, inputs)
        if made is None:
            left_out.append(f"{mix}: needs a second, longer input")
        else:
            found.append(made)
    return found, left_out


def loads(matrix: Matrix) -> list[dict]:
    """Each load as fields of a Workload."""
    if matrix.request_rates:
        return [{"request_rate": rate} for rate in sorted(matrix.request_rates)]
    return [{"concurrency": concurrency} for concurrency in sorted(matrix.concurrencies)]


def requests(load: dict, matrix: Matrix) -> int:
    """Requests of a repetition."""
    return max(1, round(load.get("concurrency", 0) or load["request_rate"] * 10) * matrix.requests_each)


def mixed(mix: str, matrix: Matrix, inputs: list[int]) -> Workload | None:
    """One mix, at the middle of the loads; None where the inputs do not give it."""
    load = loads(matrix)[len(loads(matrix)) // 2]
    short, long = inputs[0], inputs[-1]
    shared = {"input_tokens": short, "output_tokens": min(matrix.outputs), "slo": matrix.slo, **load}
    count = requests(load, matrix)
    if mix == "tail isolation":
        return Workload(name=mix, requests=count, long_input_tokens=long, **shared) if long > short else None
    if mix == "multi-turn":
        return Workload(name=mix, requests=max(1, count // TURNS) * TURNS, turns=TURNS, **shared)
    return Workload(name=mix, requests=count, **shared)
