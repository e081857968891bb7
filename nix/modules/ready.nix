# The appliance as a whole: every worker is the planned one, and a completion has come back through the front door.
{ config, lib, ... }:
let
  cfg = config.services.sglang-appliance;
  front = cfg.workerUnits ++ lib.optional cfg.router.enable "sglang-router.service";
  verify = check: "${cfg.package}/bin/appliance verify ${check} /etc/sglang-appliance/plan.json";
in
{
  config = lib.mkIf cfg.enable {
    systemd.services.sglang-ready = {
      description = "SGLang appliance: it answers, and is what was planned";
      requires = [ "sglang-model.service" ];
      wants = front;
      after = [ "sglang-model.service" ] ++ front;
      partOf = [ "sglang-appliance.target" ];
      restartTriggers = [ (builtins.toJSON cfg.plan) ];
      environment.HOME = "/tmp";
      unitConfig.StartLimitIntervalSec = 0;
      serviceConfig = import ./hardening.nix // {
        Type = "oneshot";
        RemainAfterExit = true;
        ExecStart = [
          (verify "identity")
          (verify "serving")
        ];
        TimeoutStartSec = 300; # the first request sets up the KV connection, 38 s in one report (sgl#28737)
        Restart = "on-failure";
        RestartSec = 15;
        RestartSteps = 5;
        RestartMaxDelaySec = 300;
        PrivateDevices = true;
        MemoryDenyWriteExecute = true;
        ProcSubset = "pid";
        IPAddressDeny = "any";
        IPAddressAllow = [ "localhost" ];
      };
    };
  };
}
