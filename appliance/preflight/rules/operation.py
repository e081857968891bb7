"""What already runs, and what the environment brings along."""

from appliance.preflight.conditions import CUDA_PLAN, PLAN
from appliance.preflight.facts import Facts
from appliance.preflight.reading import ENVIRONMENTS, arguments, environments, number
from appliance.preflight.rule import Found, rule

PROXIES = ("http_proxy", "https_proxy", "all_proxy")


@rule(
    "port-taken",
    "A planned port is in use",
    "error",
    needs=["plan", "machine.listeners"],
    only_if=[PLAN],
    fix="appliance down, or ss -ltnp 'sport = :PORT' and stop its owner; or plan with another --base-port",
    reference="vllm-project/vllm#9556; vllm-project/vllm#39015",
)
def port_taken(facts: Facts):
    """Either the start fails, or requests reach the server of last week, which answers them well."""
    held = {listener.port: listener for listener in facts.machine.listeners}
    for holder, port in facts.plan.listeners():
        if port in held:
            owner = held[port]
            by = f" by {owner.process} (pid {owner.pid})" if owner.process else ""
            yield f"port {port} ({holder}) is in use on {owner.address}{by}"


@rule(
    "gpus-not-there",
    "The plan uses GPUs that the machine does not have",
    "error",
    needs=["plan", "machine.gpus"],
    only_if=[CUDA_PLAN],
    fix="appliance plan, from this machine's own report",
    reference="Lei-010/hermes-agent, 7 of 8 GPUs",
)
def gpus_not_there(facts: Facts):
    """The plan was made for another machine, or a card has died since."""
    there = {gpu.index for gpu in facts.machine.gpus}
    for worker in facts.plan.workers:
        gone = [index for index in worker.gpus if index not in there]
        if gone:
            yield f"worker {worker.name}: GPU {', '.join(map(str, gone))} of {len(there)} there"


@rule(
    "engine-already-running",
    "An inference server is running already",
    "warning",
    needs=["machine.engines"],
    fix="stop it, or plan around its GPUs and ports",
    reference="Lei-010/hermes-agent, healthy but the wrong server",
)
def engine_already_running(facts: Facts):
    """It holds GPU memory, and a client that asks the old port is served by it."""
    for engine in facts.machine.engines:
        model = f", model {engine.model}" if engine.model else ""
        yield f"{engine.name} {engine.version or ''} (pid {engine.pid}, port {engine.port}{model})"


@rule(
    "running-server-is-another",
    "A running server is not the planned one",
    "warning",
    needs=["plan", "machine.engines"],
    only_if=[PLAN],
    fix="appliance verify identity PLAN",
    reference="Lei-010/hermes-agent; llm-d/llm-d#499",
)
def running_server_is_another(facts: Facts):
    """A stale server on a planned port is healthy by every health check: version and context length tell."""
    ports = {worker.port: worker for worker in facts.plan.workers}
    for engine in facts.machine.engines:
        worker = ports.get(engine.port)
        if worker is None:
            continue
        if engine.version and engine.version != facts.plan.engine.version:
            yield f"port {engine.port}: {engine.name} {engine.version}; planned {facts.plan.engine.version}"
        planned = number(arguments(worker).get("--context-length"))
        running = (engine.identity or {}).get("context_length")
        if planned and isinstance(running, int) and running != planned:
            yield f"port {engine.port}: context {running}; planned {planned:.0f}"


@rule(
    "visible-devices-set",
    "CUDA_VISIBLE_DEVICES is set where workers are started",
    "warning",
    needs=[ENVIRONMENTS],
    fix="unset CUDA_VISIBLE_DEVICES; in a unit: systemctl cat UNIT shows the drop-in that sets it",
    reference="ollama/ollama#9722",
)
def visible_devices_set(facts: Facts):
    """An old drop-in or profile hides GPUs from whatever is started there; a plan that sets it contradicts its GPUs."""
    for where, env in environments(facts):
        value = env.get("CUDA_VISIBLE_DEVICES")
        if value is None:
            continue
        if where.startswith("worker"):
            worker = facts.plan.worker(where.removeprefix("worker "))
            if value != ",".join(map(str, worker.gpus)):
                yield Found(f"{where}: CUDA_VISIBLE_DEVICES={value}, GPUs {worker.gpus}")
        elif where.endswith(".service"):
            worker = facts.plan.worker(where.removeprefix("sglang-").removesuffix(".service")) if facts.plan else None
            if worker and value != ",".join(map(str, worker.gpus)):
                yield f"{where}: CUDA_VISIBLE_DEVICES={value}, GPUs {worker.gpus} planned"
        elif where == "the environment":
            yield Found(f"{where}: CUDA_VISIBLE_DEVICES={value}; a worker's launcher sets its own", severity="note")


@rule(
    "proxy-in-the-plan",
    "A worker is given a proxy",
    "warning",
    needs=["plan"],
    only_if=[PLAN],
    fix="take it out of the worker's environment: models are local files, and peers are on loopback",
    reference="Lei-010/hermes-agent",
)
def proxy_in_the_plan(facts: Facts):
    """Bootstrap, router and KV handshake on 127.0.0.1 go to the proxy, which answers 403 or nothing."""
    for worker in facts.plan.workers:
        named = [name for name in worker.env if name.lower() in PROXIES]
        if named:
            yield f"worker {worker.name}: {', '.join(named)}"


@rule(
    "containers-lose-gpus",
    "Containers may lose their GPUs when systemd reloads",
    "note",
    needs=["machine.services"],
    only_if=[CUDA_PLAN],
    fix='virtualisation.docker.daemon.settings.exec-opts = [ "native.cgroupdriver=cgroupfs" ];  or use CDI devices',
    reference="NVIDIA/nvidia-container-toolkit#48",
)
def containers_lose_gpus(facts: Facts):
    """`systemctl daemon-reload` takes device access away from running containers under the systemd cgroup driver."""
    running = [service.name for service in facts.machine.services if service.name == "docker.service"]
    if running and any(service.active == "active" for service in facts.machine.services if service.name in running):
        yield f"docker {facts.machine.software.docker or ''} is active on a machine with GPUs planned for services"
