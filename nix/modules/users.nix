# One static user for all units: CUDA and UCX share memory between prefill and decode (cuda_ipc, /dev/shm), which a
# dynamic user for each unit would refuse.
{ config, lib, ... }:
let
  cfg = config.services.sglang-appliance;
in
{
  config = lib.mkIf cfg.enable {
    users.users.sglang = {
      isSystemUser = true;
      group = "sglang";
      home = "/var/lib/sglang-appliance";
      description = "SGLang appliance";
    };
    users.groups.sglang = { };
  };
}
