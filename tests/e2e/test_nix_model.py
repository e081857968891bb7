"""The unit that brings the model, under a real systemd: the real fetch, the real check, a local hub."""

from tests.e2e.test_nix_units import APPLIANCE, PACKAGE, places_of
from tests.helpers import checkpoints as made
from tests.helpers.hub_server import COMMIT, REPO
from tests.helpers.nix_module import evaluate
from tests.helpers.systemd_machine import run_on_systemd

PORT = 25080
TOKEN = "hf_notARealTokenButLongEnoughToLookLikeOne"
MODULE = f"""{{ services.sglang-appliance = {{
    enable = true;
    topology = "single";
    engine.device = "cpu";
    model = {{ servedName = "m"; path = "/srv/hub"; repo = "{REPO}"; revision = "{COMMIT}"; }};
    workers.single.role = "aggregated";
    credentials.hf-token = "/etc/hf-token";
    mirror.models = "http://127.0.0.1:{PORT}";
}}; }}"""
HUB = f"""\
import sys, threading
from pathlib import Path
from tests.helpers.hub_server import Hub, serve
serve(Hub(Path(sys.argv[1]), token="{TOKEN}"), {PORT})
threading.Event().wait()
"""
SCRIPT = """\
useradd --system sglang
mkdir -p /srv/hub && chown sglang /srv/hub
echo {token} > /etc/hf-token && chmod 600 /etc/hf-token
ip link set lo up 2> /dev/null || true
start_hub() {{
    LD_LIBRARY_PATH=/srv/python/lib PYTHONPATH=/srv/project /srv/environment/bin/python {shared}/hub.py {shared}/repo &
    hub=$!
    for _ in $(seq 100); do (: < /dev/tcp/127.0.0.1/{port}) 2> /dev/null && return; sleep 0.1; done
}}
try() {{ systemctl stop sglang-model.service; systemctl start sglang-model.service 2> /dev/null || true
    echo "$1: $(systemctl show sglang-model.service -P Result)"; }}
try "hub out of reach"
start_hub; try "hub within reach"
kill $hub; try "whole already, hub out of reach"
printf x | dd of=/srv/hub/model.safetensors bs=1 seek=5000 conv=notrunc 2> /dev/null; try "found broken"
start_hub; try "asked again"
kill $hub
cmp /srv/hub/model.safetensors {shared}/repo/model.safetensors && echo "the same bytes"
journalctl --no-pager > /tmp/journal
grep -q "cannot be reached" /tmp/journal && echo "the journal has what the fetch said"
grep -c {token} /tmp/journal || true
"""


def test_a_model_that_is_whole_needs_no_hub_and_one_that_is_not_is_asked_for_again(tmp_path):
    made.write_checkpoint(tmp_path / "repo", made.llama_config(), {"lm_head.weight": ("BF16", [1000, 256])})
    (tmp_path / "hub.py").write_text(HUB)
    command = tmp_path / "package/bin/appliance"
    command.parent.mkdir(parents=True)
    command.write_text(APPLIANCE)
    command.chmod(0o755)
    found = evaluate(MODULE, package=PACKAGE, system="")
    assert found["refused"] == []
    model = {"sglang-model.service": found["units"]["sglang-model.service"]}
    script = SCRIPT.format(token=TOKEN, shared=tmp_path, port=PORT)
    places = places_of(tmp_path)
    assert run_on_systemd(model, script, shared=tmp_path, visible=[], places=places).splitlines() == [
        "hub out of reach: exit-code",
        "hub within reach: success",
        "whole already, hub out of reach: success",
        "found broken: exit-code",
        "asked again: success",
        "the same bytes",
        "the journal has what the fetch said",
        "0",
    ]
