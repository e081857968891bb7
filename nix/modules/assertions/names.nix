{ config, lib, ... }:
let
  cfg = config.services.sglang-appliance;
  claims = import ../../lib/claims.nix { inherit lib; };
  # units of the appliance that are no workers
  taken = [
    "appliance"
    "devices"
    "model"
    "ready"
    "router"
  ];
  line =
    name:
    if lib.elem name taken then
      "workers.${name}: sglang-${name} is the name of another unit of the appliance; expected another name"
    else
      "workers.\"${name}\": expected a name of lower-case letters, digits and dashes that starts with a letter, 32 characters at most";
  bad = name: lib.elem name taken || builtins.match "[a-z][a-z0-9-]{0,31}" name == null;
in
{
  assertions = lib.mkIf cfg.enable (claims.refuse (map line (lib.filter bad (lib.attrNames cfg.workers))));
}
