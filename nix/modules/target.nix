# Everything together. It wants, and does not require: restarting one part never restarts the others.
{ config, lib, ... }:
let
  cfg = config.services.sglang-appliance;
  parts = [
    "sglang-model.service"
  ]
  ++ cfg.workerUnits
  ++ lib.optional cfg.router.enable "sglang-router.service"
  ++ [ "sglang-ready.service" ];
in
{
  config = lib.mkIf cfg.enable {
    systemd.targets.sglang-appliance = {
      description = "SGLang appliance: ${cfg.model.servedName}, ${cfg.topology}";
      wantedBy = [ "multi-user.target" ];
      wants = parts;
      after = parts;
    };
  };
}
