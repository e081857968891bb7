# Nothing is opened unless it is asked for, and then the router's port only.
{ config, lib, ... }:
let
  cfg = config.services.sglang-appliance;
in
{
  options.services.sglang-appliance.openFirewall = lib.mkOption {
    type = lib.types.bool;
    default = false;
    example = true;
    description = ''
      Open the router's port. It asks nobody for a password: who reaches it may use the model. For other networks than a
      trusted one put a reverse proxy with authentication in front.
    '';
  };

  config = lib.mkIf (cfg.enable && cfg.openFirewall && cfg.router.enable) {
    networking.firewall.allowedTCPPorts = [ cfg.router.port ];
    warnings =
      lib.optional (lib.hasPrefix "127." cfg.router.host || cfg.router.host == "::1")
        "services.sglang-appliance.openFirewall opens port ${toString cfg.router.port}, but router.host is ${cfg.router.host}, which nobody elsewhere reaches; set router.host";
  };
}
