# /dev/nvidia-uvm before any worker: a unit may use the devices that exist when it starts, and without this one CUDA does
# not initialise (nixpkgs#331069, nixpkgs#323123). Workers cannot make it themselves: they have no privileges.
{
  config,
  lib,
  pkgs,
  ...
}:
let
  cfg = config.services.sglang-appliance;
  device = "/dev/nvidia-uvm";
  missing = "${device} is missing after 60 s; expected the NVIDIA driver with its module nvidia_uvm";
  wait = "for second in {1..60}; do [ -c ${device} ] && exit; sleep 1; done; echo \"${missing}\" >&2; exit 1";
in
{
  config = lib.mkIf (cfg.enable && cfg.engine.device == "cuda") {
    systemd.services.sglang-devices = {
      description = "SGLang appliance: CUDA devices";
      wants = [ "modprobe@nvidia_uvm.service" ];
      after = [
        "modprobe@nvidia_uvm.service"
        "systemd-udevd.service" # makes the device once the module is there
      ];
      serviceConfig = import ./hardening.nix // {
        Type = "oneshot";
        RemainAfterExit = true;
        ExecStart = "${pkgs.bash}/bin/bash -c '${wait}'";
        PrivateNetwork = true;
        ProcSubset = "pid";
      };
    };
  };
}
