"""Plan: who gets which GPUs, ports, arguments and environment, each decision with its reason."""

import hashlib
import ipaddress
import json
from collections import Counter
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from appliance.documents.base import Document, Part, Text
from appliance.documents.costs import CostedTopology

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Port = Annotated[int, Field(ge=1, le=65535)]
Role = Literal["prefill", "decode", "aggregated"]
Topology = Literal["pd", "replicas", "single"]


class PlannedModel(Part):
    path: Text
    """Folder on the machine that serves."""
    repo: Text | None = None
    """Hub id that the folder is filled from, at the commit `revision`; null: the folder is there already."""
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None = None
    served_name: Annotated[Text, Field(min_length=1)]
    """The router routes by this name: a request with another one gets "no_available_workers"."""


class PlannedEngine(Part):
    name: Literal["sglang"] = "sglang"
    version: str
    device: Literal["cpu", "cuda"]


class Worker(Part):
    """One engine server. Ports, role and tensor parallelism are fields; `args` holds all other arguments."""

    name: Name
    role: Role
    gpus: list[Annotated[int, Field(ge=0)]] = []
    numa_node: Annotated[int, Field(ge=0)] | None = None
    tp_size: Annotated[int, Field(ge=1)] = 1
    port: Port
    bootstrap_port: Port | None = None
    nccl_port: Port | None = None
    args: list[Text] = []
    env: dict[VariableName, Text] = {}
    reasons: list[str] = []

    def ports(self) -> dict[str, int]:
        """The ports that this worker listens on, by the field that sets each."""
        named = {"port": self.port, "bootstrap_port": self.bootstrap_port, "nccl_port": self.nccl_port}
        return {field: port for field, port in named.items() if port is not None}


class Router(Part):
    """The router in front of the workers."""

    host: str | None = None
    """The address that clients reach it at, of any kind; None: the plan's host. It asks nobody for a password."""
    port: Port
    metrics_port: Port
    args: list[Text] = []
    env: dict[VariableName, Text] = {}
    reasons: list[str] = []

    @field_validator("host")
    @classmethod
    def _is_address(cls, host: str | None) -> str | None:
        try:
            ipaddress.ip_address(host or "127.0.0.1")
        except ValueError:
            raise ValueError(f"{host!r} is not an address; expected one such as 0.0.0.0 or 192.0.2.7") from None
        return host or None

    def ports(self) -> dict[str, int]:
        """The ports that the router listens on, by the field that sets each."""
        return {"port": self.port, "metrics_port": self.metrics_port}


class Plan(Document):
    KIND: ClassVar[str] = "Plan"
    kind: Literal["Plan"] = "Plan"
    topology: Topology
    model: PlannedModel
    engine: PlannedEngine
    host: str = "127.0.0.1"
    """A loopback address: engines and router ask nobody for a password."""
    workers: Annotated[list[Worker], Field(min_length=1)]
    router: Router | None = None
    on_worker_exit: Literal["stop", "restart"] = "stop"
    """`stop`: a dead worker takes everything down. `restart`: it is started again, `max_restarts` times at most."""
    max_restarts: Annotated[int, Field(ge=0)] = 3
    start_timeout_s: Annotated[float, Field(gt=0, le=86400)] = 600
    shared_gpus: bool = False
    """Whether workers may share a GPU: for prefill and decode on a machine that has one."""
    stop_timeout_s: Annotated[float, Field(ge=0, le=3600)] = 60
    """Time to drain and to release the GPUs after SIGTERM; what still runs then is killed."""
    reasons: list[str] = []
    topologies: list[CostedTopology] = []
    """Each topology with its costs and bounds; none in a plan for CPUs."""

    @field_validator("host")
    @classmethod
    def _is_loopback(cls, host: str) -> str:
        try:
            loopback = ipaddress.ip_address(host).is_loopback
        except ValueError:
            loopback = False
        if not loopback:
            raise ValueError(f"{host!r} is not a loopback address; expected one such as 127.0.0.1")
        return host

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        names = Counter(worker.name for worker in self.workers)
        names["router"] += 1  # `launch router` is the router, whether this plan has one or not
        for name, count in names.items():
            if count > 1:
                raise ValueError(f"the name {name!r} is given {count} times; expected each name once")
        holders: dict[int, str] = {}
        for holder, port in self.listeners():
            if port in holders:
                raise ValueError(f"port {port} is given to {holders[port]} and to {holder}; expected each port once")
            holders[port] = holder
        owners: dict[int, str] = {}
        for worker in self.workers:
            for gpu, count in Counter(worker.gpus).items():
                if count > 1:
                    raise ValueError(f"GPU {gpu} is given {count} times to {worker.name}; expected each GPU once")
                if gpu in owners and not self.shared_gpus:
                    raise ValueError(
                        f"GPU {gpu} is given to {owners[gpu]} and to {worker.name}; expected each GPU once"
                    )
                owners[gpu] = worker.name
        self._fits_topology()
        return self

    def _fits_topology(self) -> None:
        roles = Counter(worker.role for worker in self.workers)
        shapes = {
            "pd": (roles["prefill"] >= 1 and roles["decode"] >= 1 and not roles["aggregated"] and self.router),
            "replicas": (roles.keys() == {"aggregated"} and self.router),
            "single": (roles == {"aggregated": 1} and not self.router),
        }
        if not shapes[self.topology]:
            expected = {
                "pd": "at least one prefill and one decode worker, no other, and a router",
                "replicas": "aggregated workers only, and a router",
                "single": "exactly one aggregated worker and no router",
            }
            found = ", ".join(f"{count} {role}" for role, count in sorted(roles.items()))
            raise ValueError(
                f"topology {self.topology!r} needs {expected[self.topology]}; "
                f"found {found} and {'a' if self.router else 'no'} router"
            )

    def listeners(self) -> list[tuple[str, int]]:
        """Every port of the plan with who listens on it, as ("worker.field", port)."""
        workers = [(f"{w.name}.{field}", port) for w in self.workers for field, port in w.ports().items()]
        router = [(f"router.{field}", port) for field, port in self.router.ports().items()] if self.router else []
        return workers + router

    def address_of(self, listener: str) -> str:
        """The address that `listener` ("decode.port", as listeners() names it) binds; "" is every one.

        torch's store on the NCCL port listens on every address, whatever host the engine is given.
        """
        if listener.endswith(".nccl_port"):
            return ""
        return self.router_host() if listener == "router.port" else self.host

    def worker(self, name: str) -> Worker | None:
        """The worker called `name`, or None."""
        return next((worker for worker in self.workers if worker.name == name), None)

    def endpoint(self) -> str:
        """Base URL that clients use: the router's, or the only worker's."""
        return self.url(self.router.port if self.router else self.workers[0].port)

    def rank_pairs(self) -> list[tuple[int, int]]:
        """(GPU of prefill, GPU of decode) of each rank: KV cache goes from the one to the other. Empty without both."""
        prefill = next((worker for worker in self.workers if worker.role == "prefill"), None)
        decode = next((worker for worker in self.workers if worker.role == "decode"), None)
        return list(zip(prefill.gpus, decode.gpus, strict=False)) if prefill and decode else []

    def url(self, port: int) -> str:
        """Base URL at which this machine reaches what listens on `port`: on the plan's host, the router on its own."""
        host = self.router_host() if self.router and port == self.router.port else self.host
        if ipaddress.ip_address(host).is_unspecified:  # it listens on every address, and is asked at this one
            host = "::1" if ":" in host else "127.0.0.1"
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def router_host(self) -> str:
        """The address that the router listens on."""
        return self.router.host if self.router and self.router.host else self.host

    def identity(self) -> str:
        """sha256 over everything that decides what runs; reasons and costs, which do not, are left out.

        Nor does it matter in which order workers stand, since each has a name, nor arguments of unlike names, which
        argparse takes in any order, nor whether the router's host is said or taken from the plan: the NixOS module
        writes a plan in its own order, and it is the same plan.
        """
        data = self.model_dump(mode="json", exclude={"reasons", "topologies"})
        data["workers"].sort(key=lambda worker: worker["name"])
        if data["router"]:
            data["router"]["host"] = self.router_host()
        for part in [*data["workers"], *([data["router"]] if data["router"] else [])]:
            part.pop("reasons", None)
            part["args"] = in_order(part["args"])
        return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def in_order(args: list[str]) -> list[list[str]]:
    """Arguments as groups, each a flag and its values, by the flags' names; of one that comes twice the order stays."""
    groups: list[list[str]] = []
    for word in args:
        if word.startswith("--") or not groups:
            groups.append([])
        groups[-1].append(word)
    return sorted(groups, key=lambda group: group[0].split("=", 1)[0])
