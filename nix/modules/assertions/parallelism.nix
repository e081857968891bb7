# How many GPUs the engine will use, against those that it is given.
{ config, lib, ... }:
let
  cfg = config.services.sglang-appliance;
  claims = import ../../lib/claims.nix { inherit lib; };
  faults =
    name: worker:
    let
      size =
        argument:
        let
          value = worker.effectiveSettings.${argument} or null;
        in
        if builtins.isInt value then value else 1;
      dpAttention = worker.effectiveSettings.enable-dp-attention or null == true;
      # attention data parallelism divides the ranks of tensor parallelism; without it every replica has its own
      replicas = if dpAttention then 1 else size "dp-size";
      ranks = worker.tpSize * size "pp-size" * replicas;
      gpus = lib.length worker.gpus;
      at = "workers.${name}";
    in
    lib.optional (gpus > 0 && ranks != gpus)
      "${at}: tpSize ${toString worker.tpSize}, pp-size ${toString (size "pp-size")} and dp-size ${toString (size "dp-size")} make ${toString ranks} ranks; gpus has ${toString gpus}"
    ++ lib.optional (
      size "ep-size" > worker.tpSize
    ) "${at}.settings.ep-size is ${toString (size "ep-size")}, tpSize ${toString worker.tpSize}; expected ep-size at most tpSize"
    ++ lib.optional (
      dpAttention && size "dp-size" < 2
    ) "${at}.settings.enable-dp-attention without dp-size builds no group; expected dp-size of at least 2";
in
{
  assertions = lib.mkIf cfg.enable (claims.refuse (lib.concatLists (lib.mapAttrsToList faults cfg.workers)));
}
