"""What SGLang needs to be told to serve on a CPU."""

from appliance.engines.settings import Setting

KV_TOKENS = 16384
RUNNING_REQUESTS = 8

COMMON_ARGS = [
    Setting(
        "--max-total-tokens", str(KV_TOKENS), "KV cache of a fixed size, since a CPU has no memory of its own to fill"
    ),
    Setting("--max-running-requests", str(RUNNING_REQUESTS), "as many at once as a few cores can serve"),
    Setting("--sleep-on-idle", None, "an idle scheduler would otherwise keep one core busy"),
    Setting("--enable-metrics", None, "verify and bench read the worker's counters"),
]
PD_ARGS = [Setting("--disaggregation-transfer-backend", "nixl", "KV cache goes from prefill to decode by NIXL")]
DECODE_ARGS = [
    Setting("--disaggregation-decode-retraction-backup", "none", "the default keeps a backup in CUDA host memory"),
]
PD_ENV = [
    Setting("SGLANG_HOST_IP", "127.0.0.1", "prefill and decode meet on loopback, also where there is no other address"),
    Setting(
        "SGLANG_DISAGG_PREFILL_EARLY_SEND_CACHED_PREFIX",
        "0",
        "sending a cached prefix early needs a CUDA event; without this the second equal prompt ends prefill",
    ),
    Setting(
        "SGLANG_DISAGGREGATION_HEARTBEAT_INTERVAL",
        "2",
        "decode must miss two heartbeats of a prefill that is started again, or it goes on with the dead one",
    ),
]
MODEL_ENV = [Setting("HF_HUB_OFFLINE", "1", "the model is a local folder; a server downloads nothing")]


def threads(count: int) -> Setting:
    """The setting for `count` OpenMP threads a worker."""
    return Setting(
        "OMP_NUM_THREADS", str(count), "half the CPUs, shared by all workers: spinning threads starve others"
    )
