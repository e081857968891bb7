{ config, lib, ... }:
let
  cfg = config.services.sglang-appliance;
  claims = import ../../lib/claims.nix { inherit lib; };
  listener = by: what: lib.optional (what != null) { inherit by what; };
  listeners =
    lib.concatLists (
      lib.mapAttrsToList (
        name: worker:
        listener "workers.${name}.port" worker.port
        ++ listener "workers.${name}.bootstrapPort" worker.bootstrapPort
        ++ listener "workers.${name}.ncclPort" worker.ncclPort
      ) cfg.workers
    )
    ++ lib.optionals cfg.router.enable (
      listener "router.port" cfg.router.port ++ listener "router.metricsPort" cfg.router.metricsPort
    );
  line = port: holders: "port ${port} is given to ${lib.concatStringsSep " and to " holders}; expected each port once";
in
{
  assertions = lib.mkIf cfg.enable (claims.refuse (claims.collisions line listeners));
}
