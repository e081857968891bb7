"""The module's units under a real systemd: the real engine on the CPU, real NIXL, the real router."""

import shutil
import sys
import sysconfig
from pathlib import Path

from appliance.documents import Findings
from tests.helpers.nix_module import PROJECT, evaluate, module_of
from tests.helpers.systemd_machine import run_on_systemd

MODEL = "/srv/models/demo"
PACKAGE = "/srv/package"

APPLIANCE = """\
#!/bin/sh
export LD_LIBRARY_PATH=/srv/python/lib PYTHONPATH=/srv/project
exec /srv/environment/bin/python -m appliance "$@"
"""
FUNCTIONS = """\
useradd --system --home-dir /var/lib/sglang-appliance sglang
show() { systemctl show "$1" -P "$2"; }
states() { for unit in "$@"; do echo "$unit $(show sglang-$unit.service ActiveState)"; done; }
"""


def run_units(plan, model: Path, script: str, tmp_path: Path, **changes) -> list[str]:
    """Run `script` on a machine that has the units, the package, the model and the plan at their places."""
    plan = plan.model_copy(update={"model": plan.model.model_copy(update={"path": MODEL})})
    found = evaluate(module_of(plan, **changes), package=PACKAGE, system="")
    assert found["refused"] == []
    command = tmp_path / "package/bin/appliance"
    command.parent.mkdir(parents=True)
    command.write_text(APPLIANCE)
    command.chmod(0o755)
    plan_file = tmp_path / "plan.json"
    plan_file.write_text(found["etc"]["sglang-appliance/plan.json"])
    places = {
        "/etc/sglang-appliance/plan.json": plan_file,
        MODEL: model,
        **places_of(tmp_path),
    }
    script = FUNCTIONS + script
    return run_on_systemd(
        found["units"], script, shared=tmp_path, visible=[], timeout_s=600, places=places
    ).splitlines()


def places_of(tmp_path: Path) -> dict[str, Path]:
    """The package, the project and its interpreter, by where they are in the machine.

    Not at their own paths: the units see neither /home nor /root nor /tmp.
    """
    environment, packages = interpreter(tmp_path)
    return {
        PACKAGE: tmp_path / "package",
        "/srv/project": PROJECT,
        "/srv/python": Path(sys.base_prefix),
        "/srv/environment": environment,
        f"/srv/environment/{packages.relative_to(sys.prefix)}": packages,
    }


def interpreter(tmp_path: Path) -> tuple[Path, Path]:
    """This environment, made to be at /srv/environment over an interpreter at /srv/python; and its packages."""
    packages = Path(sysconfig.get_path("purelib"))
    environment = tmp_path / "environment"
    (environment / "bin").mkdir(parents=True)
    (environment / packages.relative_to(sys.prefix)).mkdir(parents=True)
    (environment / "bin/python").symlink_to(f"/srv/python/bin/{Path(sys.executable).resolve().name}")
    (environment / "pyvenv.cfg").write_text("home = /srv/python/bin\ninclude-system-site-packages = false\n")
    return environment, packages


PAIR = """\
ask() {{
    curl -s --max-time 60 {url}/v1/completions -H 'Content-Type: application/json' \\
        -d '{{"model": "demo", "prompt": "x", "max_tokens": '$1', "ignore_eos": true, "stream": '$2'}}'
}}
stream() {{ # asks for so many tokens in the background, and returns when they flow
    : > {shared}/stream
    ask $1 true > {shared}/stream &
    client=$!
    for _ in $(seq 100); do [ $(wc -l < {shared}/stream) -le 20 ] || return 0; sleep 0.1; done
}}
streamed() {{ wait $client || true; echo "$1 $(grep -c "$2" {shared}/stream || true)"; }}
main_pid() {{ show sglang-$1.service MainPID; }}
until_it() {{ for _ in $(seq 480); do "$@" && return; sleep 0.5; done; return 1; }}
started_again() {{ [ $(show sglang-$1.service NRestarts) = 1 ] && [ $(show sglang-$1.service ActiveState) = active ]; }}
answers() {{ ask 3 false | grep -q '"completion_tokens":3'; }}

end='"finish_reason":"length"'
systemctl start sglang-appliance.target
states model prefill decode router ready
prefill=$(main_pid prefill)
echo "policy: $(show sglang-prefill.service NUMAPolicy) $(show sglang-prefill.service NUMAMask)"
echo "user: $(ps -o user= -p $prefill)"
answers && echo "a completion came through the router"

for victim in decode prefill; do
    other=$([ $victim = decode ] && echo prefill || echo decode)
    before=$(main_pid $other) router=$(main_pid router)
    stream $([ $victim = decode ] && echo 4000 || echo 200)
    kill -9 $(main_pid $victim)
    [ $victim = decode ] && streamed "decode killed, errors in the stream:" '"error"'
    [ $victim = prefill ] && streamed "prefill killed, streams that came to their end:" "$end"
    until_it started_again $victim && echo "$victim killed, started again"
    until_it answers && echo "$victim killed, answers again"
    [ $before = $(main_pid $other) ] && [ $router = $(main_pid router) ] && echo "$victim killed, the others went on"
done

stream 200
systemctl stop sglang-appliance.target # returns when the target has stopped, which is at once
streamed "stopped, streams that came to their end:" "$end"
down() {{ [ $(states prefill decode router | grep -cE ' (inactive|failed)$') = 3 ]; }}
until_it down
states prefill decode router ready
"""


def test_a_pair_serves_survives_a_killed_worker_and_drains(make_plan, demo_model, tmp_path):
    plan = make_plan("pd", stop_timeout_s=30.0)
    script = PAIR.format(url=plan.endpoint(), shared=tmp_path)
    lines = run_units(plan, demo_model, script, tmp_path)
    assert lines[:5] == ["model active", "prefill active", "decode active", "router active", "ready active"]
    node = plan.workers[0].numa_node
    assert node is None or lines[5] == f"policy: bind {node}"
    assert lines[6:8] == ["user: sglang", "a completion came through the router"]
    # the client of a decode worker that dies sees an error; one whose prefill is done does not need prefill any more
    assert lines[8] == "decode killed, errors in the stream: 1"
    assert lines[12] == "prefill killed, streams that came to their end: 1"
    for victim, seen in (("decode", lines[9:12]), ("prefill", lines[13:16])):
        assert seen == [
            f"{victim} killed, started again",
            f"{victim} killed, answers again",
            f"{victim} killed, the others went on",
        ]
    assert lines[16] == "stopped, streams that came to their end: 1"
    assert lines[17:] == ["prefill inactive", "decode inactive", "router inactive", "ready inactive"]


BROKEN = """\
systemctl start sglang-appliance.target
states model prefill decode router ready
journalctl --no-pager -o cat
"""


def test_a_model_that_is_cut_off_keeps_the_workers_down_with_a_reason(make_plan, demo_model, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(demo_model, model)
    weights = model / "model.safetensors"
    size = weights.stat().st_size
    weights.write_bytes(weights.read_bytes()[:-1000])
    lines = run_units(make_plan("pd"), model, BROKEN, tmp_path)
    assert lines[:5] == ["model failed", "prefill inactive", "decode inactive", "router inactive", "ready inactive"]
    reason = f"{MODEL}/model.safetensors: truncated: {size - 1000} bytes, expected {size}"
    assert reason in " ".join(" ".join(lines).split())  # the table for people breaks long lines
    assert "Dependency failed for sglang-prefill.service - SGLang appliance: prefill worker prefill." in lines


SANDBOX = """\
PYTHONPATH=/srv/project LD_LIBRARY_PATH=/srv/python/lib /srv/environment/bin/python -m appliance \\
    preflight --plan /etc/sglang-appliance/plan.json --only-probe sandbox --json --state-dir /run/preflight \\
    > {shared}/findings.json || true
"""


def test_preflight_shares_memory_from_within_the_settings_of_the_modules_units(make_plan, demo_model, tmp_path):
    run_units(make_plan("pd"), demo_model, SANDBOX.format(shared=tmp_path), tmp_path)
    findings = Findings.read(tmp_path / "findings.json")
    (probe,) = findings.probes.results
    assert probe.status == "measured", probe
    assert probe.facts["sandbox"].startswith("transient units with ")
    assert {measure.name: measure.value for measure in probe.measures} == {"shared memory": 1, "process_vm_readv": 1}
