# services.sglang-appliance: prefill, decode or replicas as services of their own, bound to their NUMA nodes, behind a
# router. It sets only systemd.*, environment.etc, users, networking.firewall, assertions and warnings, so that it can
# be evaluated outside NixOS as well.
{
  imports = [
    ./options.nix
    ./assertions
    ./credentials.nix
    ./devices.nix
    ./firewall.nix
    ./kv-transfer.nix
    ./mirror.nix
    ./model.nix
    ./monitoring.nix
    ./plan.nix
    ./ready.nix
    ./router.nix
    ./target.nix
    ./users.nix
    ./workers.nix
  ];
}
