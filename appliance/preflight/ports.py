"""Whether the ports of a plan are free, and who holds one that is not."""

import socket

import psutil

from appliance.documents import Plan
from appliance.errors import InputError


def require_free(plan: Plan) -> None:
    """Raise InputError that names the first port in use, what the plan wants it for, and the process on it."""
    for holder, port in plan.listeners():
        problem = why_not(plan.address_of(holder), port)
        if problem:
            raise InputError(f"port {port} ({holder}) {problem}; expected it free")


def why_not(host: str, port: int) -> str | None:
    """Why `port` cannot be bound on `host`, in words, or None if it can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: TIME_WAIT is no holder
        try:
            probe.bind((host, port))
            probe.listen()
        except OSError as error:
            holder = listener(port)
            return f"is in use by {holder}" if holder else f"cannot be bound on {host or 'any'} ({error.strerror})"
    return None


def listener(port: int) -> str | None:
    """The process that listens on `port`, as "name (pid 1234)"; None if nobody does or it cannot be seen."""
    for connection in psutil.net_connections(kind="tcp"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
            if connection.pid is None:
                return "a process of another user"
            try:
                return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
            except psutil.NoSuchProcess:
                return f"pid {connection.pid}"
    return None
