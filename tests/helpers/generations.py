"""Generations of the systemd kind in the store of a host: the module's real units over a package for the test."""

import json

from tests.helpers.hosts import Host
from tests.helpers.nix_module import evaluate, module_of

MODEL = "/srv/models/demo"
APPLIANCE = """\
#!/bin/sh
export LD_LIBRARY_PATH=/srv/python/lib PYTHONPATH=/srv/project PYTHONDONTWRITEBYTECODE=1
{launch}
exec /srv/environment/bin/python -m appliance "$@"
"""
STANDIN = """\
if [ "$1" = launch ]; then
    exec /srv/environment/bin/python /srv/project/tests/helpers/standin_engine.py "$2" "$4" "{fault}"
fi"""
# nix/systemd-generation.nix is the project's; mkDerivation and the package are stand-ins
EXPRESSION = """\
let
  mkDerivation = attributes: derivation (attributes // {
    system = builtins.currentSystem;
    builder = "/bin/bash";
    # the last word is bash's: it would become its last command, which closes the log before its end, and is killed
    args = [ "-euc" "export PATH=/usr/bin:/bin; ${attributes.buildCommand}\nexit" ];
  });
  package = mkDerivation {
    name = "standin-sglang-appliance";
    text = builtins.readFile ./appliance.sh;
    buildCommand = ''mkdir -p $out/bin; printf '%s' "$text" > $out/bin/appliance; chmod +x $out/bin/appliance'';
  };
  given = builtins.fromJSON (builtins.readFile ./given.json);
  units = builtins.mapAttrs (_: builtins.replaceStrings [ "@package@" ] [ "${package}" ]) given.units;
in
import /srv/project/nix/systemd-generation.nix { stdenvNoCC = { inherit mkDerivation; }; } (given // { inherit package units; })
"""


def evaluated(plan, **changes) -> dict:
    """What the module makes of a plan: slow, and the same for every package."""
    plan = plan.model_copy(update={"model": plan.model.model_copy(update={"path": MODEL})})
    found = evaluate(module_of(plan, **changes), package="@package@", system="")
    assert found["refused"] == []
    prefix = "sglang-appliance/"
    return {
        "units": {name: text for name, text in found["units"].items() if name.startswith("sglang-")},
        "files": {path.removeprefix(prefix): text for path, text in found["etc"].items() if path.startswith(prefix)},
        "tmpfiles": [line for line in found["tmpfiles"] if " sglang " in line],
    }


def generation(host: Host, given: dict, fault: str | None = "none") -> str:
    """Build a generation in the store of `host`; its path. `fault` is the stand-in engine's; None: the real engine."""
    launch = STANDIN.format(fault=fault) if fault else ""
    folder = "/root/generation"
    host.ssh(f"mkdir -p {folder}")
    for name, text in {
        "default.nix": EXPRESSION,
        "appliance.sh": APPLIANCE.format(launch=launch),
        "given.json": json.dumps(given),
    }.items():
        host.ssh(f"cat > {folder}/{name}", text=text)
    return host.ssh(f"nix build --impure --no-link --print-out-paths --file {folder}").strip()
