# The plan that `appliance launch` reads: the same document that `appliance plan` writes.
{ config, lib, ... }:
let
  inherit (lib) mapAttrsToList mkOption types;
  cfg = config.services.sglang-appliance;
  arguments = import ../lib/arguments.nix { inherit lib; };

  worker = name: worker: {
    inherit name;
    inherit (worker) role gpus port reasons;
    numa_node = worker.numaNode;
    tp_size = worker.tpSize;
    bootstrap_port = worker.bootstrapPort;
    nccl_port = worker.ncclPort;
    args = arguments.words worker.effectiveSettings;
    env = worker.effectiveEnvironment;
  };
in
{
  options.services.sglang-appliance.plan = mkOption {
    type = types.attrsOf types.anything;
    internal = true;
    readOnly = true;
    description = "The plan as a document.";
  };

  config = {
    services.sglang-appliance.plan = {
      kind = "Plan";
      schema_version = 1;
      inherit (cfg) topology host reasons;
      model = {
        path = cfg.model.path;
        served_name = cfg.model.servedName;
      };
      engine = {
        name = "sglang";
        inherit (cfg.engine) version device;
      };
      workers = mapAttrsToList worker cfg.workers;
      router =
        if cfg.router.enable then
          {
            inherit (cfg.router) host port reasons;
            metrics_port = cfg.router.metricsPort;
            args = arguments.words cfg.router.effectiveSettings;
            env = cfg.router.environment;
          }
        else
          null;
      start_timeout_s = cfg.startTimeout;
      stop_timeout_s = cfg.stopTimeout;
    };

    environment.etc = lib.mkIf cfg.enable {
      "sglang-appliance/plan.json".text = builtins.toJSON cfg.plan + "\n";
      "sglang-appliance/package".source = cfg.package; # what `appliance deploy` runs on this host
    };
  };
}
