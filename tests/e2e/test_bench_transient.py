"""`bench serve --transient` under a real systemd, with the real engine: it outlives what began it."""

import sys
from pathlib import Path

import pytest

from appliance.documents import BenchRecord
from tests.helpers.ports import free_range
from tests.helpers.systemd_machine import run_on_systemd

pytestmark = pytest.mark.usefixtures("leaves_nothing")

LOGIN = """\
[Service]
Type=oneshot
WorkingDirectory={project}
ExecStart={python} -m appliance bench serve --transient --model {model} --topology single --mix none --concurrency 1 \
    --input 32 --output-tokens 8 --requests-each 2 --repetitions 1 --base-port {port} \
    --state-dir /var/tmp/state --output {shared}/record.json
StandardError=file:{shared}/login
"""
SCRIPT = """\
systemctl start login.service
echo "what began it ended with $?, and is $(systemctl is-active login.service)"
unit=$(systemctl list-units --plain --no-legend 'appliance-bench-*' | cut -d' ' -f1)
echo "it goes on: $(systemctl is-active "$unit")"
for _ in $(seq 200); do [ "$(systemctl is-active "$unit")" = active ] || break; sleep 1; done
echo "then: $(systemctl is-active "$unit")"
journalctl --no-pager -q -u "$unit" || true
"""


def test_a_transient_run_goes_on_when_what_began_it_has_ended(demo_model, tmp_path):
    project = Path(__file__).parents[2]
    login = LOGIN.format(
        python=sys.executable, project=project, model=demo_model, port=free_range().base, shared=tmp_path
    )
    output = run_on_systemd(
        {"login.service": login}, SCRIPT, shared=tmp_path, visible=[demo_model, project], timeout_s=400
    )
    assert "running as appliance-bench-" in (tmp_path / "login").read_text()
    assert "what began it ended with 0, and is inactive" in output
    assert "it goes on: active\nthen: inactive" in output
    record = BenchRecord.read(tmp_path / "record.json")
    assert record.complete and record.cells[0].completed == 2, output
