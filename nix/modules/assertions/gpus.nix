{ config, lib, ... }:
let
  cfg = config.services.sglang-appliance;
  claims = import ../../lib/claims.nix { inherit lib; };
  held = lib.concatLists (
    lib.mapAttrsToList (
      name: worker:
      map (gpu: {
        what = gpu;
        by = "workers.${name}";
      }) worker.gpus
    ) cfg.workers
  );
  line =
    gpu: holders:
    if lib.length (lib.unique holders) == 1 then
      "GPU ${gpu} stands ${toString (lib.length holders)} times in ${lib.head holders}.gpus; expected each GPU once"
    else
      "GPU ${gpu} is given to ${lib.concatStringsSep " and to " (lib.unique holders)}; expected each GPU in one worker";
  idle = lib.filterAttrs (_: worker: worker.gpus == [ ]) cfg.workers;
  unused = lib.filterAttrs (_: worker: worker.gpus != [ ]) cfg.workers;
in
{
  assertions = lib.mkIf cfg.enable (
    claims.refuse (
      claims.collisions line held
      ++ lib.optionals (cfg.engine.device == "cuda") (
        lib.mapAttrsToList (name: _: "workers.${name}.gpus is empty; engine.device \"cuda\" needs a GPU for each worker") idle
      )
      ++ lib.optionals (cfg.engine.device == "cpu") (
        lib.mapAttrsToList (name: _: "workers.${name}.gpus is not empty, but engine.device is \"cpu\"") unused
      )
    )
  );
}
