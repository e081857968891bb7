"""What the router needs to be told."""

from appliance.engines.settings import Setting

ROUTER_ARGS = [
    Setting("--worker-startup-check-interval", "1", "the router sees a worker within a second of its start"),
    Setting(
        "--health-check-interval-secs", "5", "a worker that is gone leaves the rotation in seconds, not in minutes"
    ),
    Setting("--health-check-timeout-secs", "10", "a health request waits its turn behind a busy batch"),
    Setting("--health-success-threshold", "1", "a worker that has generated a token is in rotation at once"),
    Setting("--health-failure-threshold", "2", "one late answer of a busy worker does not take it out"),
    Setting("--shutdown-grace-period-secs", "5", "stopping waits for requests in flight, but not for minutes"),
    Setting("--disable-tokenizer-autoload", None, "requests are passed on as text; the workers tokenize"),
    Setting("--log-level", "warn", "the workers log each request already"),
]
REPLICAS_ARGS = [Setting("--policy", "cache_aware", "a prompt goes where its prefix is cached")]
