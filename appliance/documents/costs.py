"""Parts of a Plan that say what a topology costs and what bounds it. They decide nothing."""

from typing import Literal

from appliance.documents.base import Part


class RankMemory(Part):
    """Memory of one GPU of a worker, in bytes. All sizes are computed, none was measured."""

    capacity: int
    weights: int
    reserve: int
    """What the engine keeps free of weights and KV cache: activations, graphs, buffers, headroom."""
    kv_pool: int
    """capacity - weights - reserve; negative: so much is lacking."""
    kv_bytes_per_token: float
    kv_fixed_bytes: int = 0
    """Of the pool: what does not grow with tokens, states for every request slot (DeepSeek-V4)."""
    kv_bytes_per_sequence: int = 0
    """States whose size does not depend on the length (linear attention)."""
    pool_tokens: int
    """Tokens that the pool holds, over all requests."""
    longest_context: int
    """Tokens of the longest request that fits, at most the model's own context."""
    context: int
    """The planned context: what is asked for, or as much of the model's as fits."""
    concurrency: int
    """Requests of the planned context that fit at once; more where they are shorter."""
    rests_on: list[str] = []


class Bound(Part):
    """What physics allows at best. A bound, never a prediction: what is measured is worse."""

    of: str
    """"decode", "prefill", "KV transfer", "all-reduce"."""
    case: str
    """What it is for: batch, lengths."""
    value: float
    unit: Literal["ms", "tok/s"]
    at: Literal["least", "most"]
    """Whether it takes at least, or gives at most, so much."""
    binds: str
    """memory bandwidth, FLOP/s, link."""
    formula: str


class CostedWorker(Part):
    name: str
    gpus: list[int]
    tp_size: int
    numa_nodes: list[int]
    memory: RankMemory | None


class CostedTopology(Part):
    """A topology as it would be on this machine, whether it was chosen or not."""

    topology: Literal["pd", "replicas", "single"]
    fits: bool
    workers: list[CostedWorker] = []
    bounds: list[Bound] = []
    reasons: list[str] = []
    """What speaks for it and against it; where it does not fit, by how much."""
