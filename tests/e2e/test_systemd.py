"""`appliance launch` under a real systemd, with the real engine."""

import sys
from pathlib import Path

import pytest

from tests.helpers.systemd_machine import run_on_systemd

pytestmark = pytest.mark.usefixtures("leaves_nothing")

WATCHDOG_S = 8
WORKER = """\
[Service]
Type=notify
NotifyAccess=all
ExecStart={python} -m appliance launch single --plan {shared}/plan.json
WorkingDirectory={project}
WatchdogSec={watchdog}
TimeoutStartSec=120
"""
SCRIPT = """\
systemctl start worker.service || journalctl --no-pager -u worker.service
show() {{ systemctl show worker.service -P "$1"; }}
echo "after start: $(show ActiveState) $(show StatusText)"
curl -s {url}/v1/completions -H 'Content-Type: application/json' \\
    -d '{{"model": "demo", "prompt": "x", "max_tokens": 3}}'
echo
echo "main process: $(tr '\\0' ' ' < /proc/$(show MainPID)/cmdline)"
sleep {longer}
echo "after longer than the watchdog: $(show ActiveState)"
pkill -STOP -f '^sglang::scheduler'
for _ in $(seq 40); do [ "$(show ActiveState)" = active ] || break; sleep 1; done
echo "after its scheduler hung: $(show ActiveState) $(show Result)"
"""


def test_ready_means_a_token_and_the_watchdog_means_it_still_answers(make_plan, demo_model, tmp_path):
    plan = make_plan("single")
    plan.write(tmp_path / "plan.json")
    url = plan.url(plan.workers[0].port)
    project = Path(__file__).parents[2]
    worker = WORKER.format(python=sys.executable, shared=tmp_path, project=project, watchdog=WATCHDOG_S)
    script = SCRIPT.format(url=url, longer=2 * WATCHDOG_S)
    lines = run_on_systemd(
        {"worker.service": worker}, script, shared=tmp_path, visible=[demo_model, project]
    ).splitlines()
    assert lines[0] == f"after start: active serving {url}"
    assert '"completion_tokens":3' in lines[1], "it answers at once when systemd calls it started"
    assert "-m sglang.launch_server" in lines[2], "the unit's main process is the engine itself"
    assert lines[3] == "after longer than the watchdog: active"
    assert lines[4] in ("after its scheduler hung: deactivating watchdog", "after its scheduler hung: failed watchdog")
