{ config, lib, ... }:
let
  cfg = config.services.sglang-appliance;
  claims = import ../../lib/claims.nix { inherit lib; };
  roles = map (worker: worker.role) (lib.attrValues cfg.workers);
  count = role: lib.count (other: other == role) roles;
  aggregatedOnly = roles != [ ] && count "aggregated" == lib.length roles;
  fits = {
    pd = count "prefill" >= 1 && count "decode" >= 1 && count "aggregated" == 0 && cfg.router.enable;
    replicas = aggregatedOnly && cfg.router.enable;
    single = aggregatedOnly && lib.length roles == 1 && !cfg.router.enable;
  };
  expected = {
    pd = "at least one prefill and one decode worker, no other, and the router";
    replicas = "aggregated workers only, and the router";
    single = "exactly one aggregated worker and no router";
  };
  found = lib.concatMapStringsSep ", " (role: "${toString (count role)} ${role}") [
    "prefill"
    "decode"
    "aggregated"
  ];
  withoutBootstrap = lib.filterAttrs (
    _: worker: worker.role != "aggregated" && worker.bootstrapPort == null
  ) cfg.workers;
in
{
  assertions = lib.mkIf cfg.enable (
    claims.refuse (
      lib.optional (
        !fits.${cfg.topology}
      ) "topology \"${cfg.topology}\" needs ${expected.${cfg.topology}}; found ${found}, and router.enable ${lib.boolToString cfg.router.enable}"
      ++ lib.mapAttrsToList (
        name: worker: "workers.${name}.bootstrapPort is null; a ${worker.role} worker needs one"
      ) withoutBootstrap
      ++ lib.optional (
        !(lib.hasPrefix "127." cfg.host || cfg.host == "::1")
      ) "host is \"${cfg.host}\"; expected a loopback address: workers ask nobody for a password (router.host is for clients)"
      ++
        lib.optional (builtins.match "[0-9]+(\\.[0-9]+){3}|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*" cfg.router.host == null)
          "router.host is \"${cfg.router.host}\"; expected an address, such as 0.0.0.0 or 192.0.2.7"
    )
  );
}
