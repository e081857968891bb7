"""What SGLang is told whatever it runs on."""

from appliance.engines.settings import Setting

METRICS = Setting("--enable-metrics", None, "verify and bench read the worker's counters")
TRANSFER = Setting("--disaggregation-transfer-backend", "nixl", "KV cache goes from prefill to decode by NIXL")
MEET_ON_LOOPBACK = Setting(
    "SGLANG_HOST_IP", "127.0.0.1", "prefill and decode meet on loopback, also where there is no other address"
)
HEARTBEAT = Setting(
    "SGLANG_DISAGGREGATION_HEARTBEAT_INTERVAL",
    "2",
    "decode must miss two heartbeats of a prefill that is started again, or it goes on with the dead one",
)
OFFLINE = Setting("HF_HUB_OFFLINE", "1", "the model is a local folder; a server downloads nothing")
