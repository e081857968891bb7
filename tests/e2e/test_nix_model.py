"""The unit that brings the model, under a real systemd; hub and check are stand-ins that say what they were asked."""

from tests.helpers.nix_module import evaluate
from tests.helpers.systemd_machine import run_on_systemd

COMMIT = "0123456789abcdef0123456789abcdef01234567"
MODULE = f"""{{ services.sglang-appliance = {{
    enable = true;
    topology = "single";
    engine.device = "cpu";
    model = {{ servedName = "m"; path = "/srv/hub"; repo = "a/b"; revision = "{COMMIT}"; }};
    workers.single.role = "aggregated";
    credentials.hf-token = "/etc/hf-token";
}}; }}"""
HF = '#!/bin/sh\necho "$*, token $(cat $HF_TOKEN_PATH)" >> /srv/hub/asked\n[ ! -e /srv/hub/unreachable ]\n'
APPLIANCE = "#!/bin/sh\n[ ! -e /srv/hub/broken ]\n"
SCRIPT = """\
useradd --system sglang
mkdir -p /srv/hub && chown sglang /srv/hub
echo geheim > /etc/hf-token && chmod 600 /etc/hf-token
try() { systemctl stop sglang-model.service; systemctl start sglang-model.service 2> /dev/null || true
    echo "$1: $(systemctl show sglang-model.service -P Result), asked $(wc -l < /srv/hub/asked)"; }
touch /srv/hub/unreachable; try "hub out of reach"
rm /srv/hub/unreachable; try "hub within reach"
touch /srv/hub/unreachable; try "whole already, hub out of reach"
touch /srv/hub/broken; try "found broken"
rm /srv/hub/broken /srv/hub/unreachable; try "asked again"
tail -n 1 /srv/hub/asked
"""


def test_a_model_that_is_whole_needs_no_hub_and_one_that_is_not_is_asked_for_again(tmp_path):
    (tmp_path / "bin").mkdir()
    for name, text in {"hf": HF, "appliance": APPLIANCE}.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    units = evaluate(MODULE, "units", package="/srv/package", system="")
    model = {"sglang-model.service": units["sglang-model.service"]}
    places = {"/srv/package/bin": tmp_path / "bin"}
    lines = run_on_systemd(model, SCRIPT, shared=tmp_path, visible=[], places=places).splitlines()
    assert lines == [
        "hub out of reach: exit-code, asked 1",
        "hub within reach: success, asked 2",
        "whole already, hub out of reach: success, asked 2",
        "found broken: exit-code, asked 2",
        "asked again: success, asked 3",
        f"download a/b --revision {COMMIT} --local-dir /srv/hub --quiet, token geheim",
    ]
