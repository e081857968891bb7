"""What runs on the machine: engines with their identity, services, listeners."""

from appliance.documents.base import Part


class Listener(Part):
    """A TCP socket that listens. `pid` and `process` are null for other users' sockets."""

    address: str
    port: int
    pid: int | None = None
    process: str | None = None


class Service(Part):
    """A systemd service that has to do with GPUs, inference or containers."""

    name: str
    active: str | None = None
    sub: str | None = None
    description: str | None = None


class RunningEngine(Part):
    """An inference server that was found among the processes."""

    name: str
    pid: int | None = None
    port: int | None = None
    command: list[str] | None = None
    """Its arguments, with the values of keys, tokens and passwords left out."""
    version: str | None = None
    model: str | None = None
    identity: dict[str, str | int | float | bool | None] | None = None
    """What the server says about itself (server_info): plain values only. Null: it did not answer."""
    environment: dict[str, str] | None = None
    """Its environment, as far as it is about CUDA, NCCL, UCX, NIXL and engines; not the shell's."""
    cpus_allowed: str | None = None
    packages: dict[str, str] | None = None
    """Versions of the packages that matter, in the environment that it runs in."""
