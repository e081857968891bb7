"""What SGLang needs to be told to serve on a CPU."""

from appliance.engines.settings import Setting
from appliance.engines.sglang.settings import HEARTBEAT, MEET_ON_LOOPBACK, METRICS, OFFLINE, TRANSFER

KV_TOKENS = 16384
RUNNING_REQUESTS = 8

COMMON_ARGS = [
    Setting(
        "--max-total-tokens", str(KV_TOKENS), "KV cache of a fixed size, since a CPU has no memory of its own to fill"
    ),
    Setting("--max-running-requests", str(RUNNING_REQUESTS), "as many at once as a few cores can serve"),
    Setting("--sleep-on-idle", None, "an idle scheduler would otherwise keep one core busy"),
    METRICS,
]
PD_ARGS = [TRANSFER]
DECODE_ARGS = [
    Setting("--disaggregation-decode-retraction-backup", "none", "the default keeps a backup in CUDA host memory"),
]
PD_ENV = [
    MEET_ON_LOOPBACK,
    Setting(
        "SGLANG_DISAGG_PREFILL_EARLY_SEND_CACHED_PREFIX",
        "0",
        "sending a cached prefix early needs a CUDA event; without this the second equal prompt ends prefill",
    ),
    HEARTBEAT,
]
MODEL_ENV = [OFFLINE]


def threads(count: int) -> Setting:
    """The setting for `count` OpenMP threads a worker."""
    return Setting(
        "OMP_NUM_THREADS", str(count), "half the CPUs, shared by all workers: spinning threads starve others"
    )
