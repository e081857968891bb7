"""`appliance launch` as a service manager calls it, with the real engine behind it."""

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from appliance.supervisor import session
from tests.helpers.cli import APPLIANCE

pytestmark = pytest.mark.usefixtures("leaves_nothing")


def test_a_launched_worker_is_bound_ready_after_a_token_and_alive(make_plan, tmp_path):
    plan = make_plan("single")
    plan.write(tmp_path / "plan.json")
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(90)
        launched = subprocess.Popen(
            [*APPLIANCE, "launch", "single", "--plan", tmp_path / "plan.json"],
            env=os.environ | {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "8000000", "TMPDIR": str(tmp_path)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        shared = []
        try:
            assert manager.recv(4096).decode() == f"STATUS=starting {plan.url(plan.workers[0].port)}"
            assert manager.recv(4096).decode().startswith("READY=1\n")
            assert manager.recv(4096).decode() == "WATCHDOG=1"
            shared = session.shared_memory(launched.pid)
            words = Path(f"/proc/{launched.pid}/cmdline").read_text().split("\0")
            assert "sglang.launch_server" in words, "the launched process has become the engine"
            if plan.workers[0].numa_node is not None:
                scheduler = next(p for p in session.members(launched.pid) if p.cmdline()[:1] == ["sglang::scheduler"])
                maps = Path(f"/proc/{scheduler.pid}/numa_maps").read_text().splitlines()
                policies = {line.split()[1] for line in maps if line.strip()}
                # "local" is set by an allocator on its own arenas: memory of the node whose CPUs it runs on
                assert policies - {"local"} == {f"bind:{plan.workers[0].numa_node}"}
        finally:
            launched.send_signal(signal.SIGTERM)
            session.kill(launched.pid)
            launched.wait()
            session.remove_shared_memory(shared, created_after=0)
