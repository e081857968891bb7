# Sites without the internet.
{ config, lib, ... }:
let
  inherit (lib) mkIf mkOption types;
  cfg = config.services.sglang-appliance;
in
{
  options.services.sglang-appliance.mirror = {
    models = mkOption {
      type = types.nullOr types.str;
      default = null;
      example = "https://models.example.org";
      description = "A server that answers like the hub, for `model.repo` (HF_ENDPOINT).";
    };
    packages = mkOption {
      type = types.nullOr types.str;
      default = null;
      example = "https://files.example.org/by-hash";
      description = ''
        A server that has files by hash, at `URL/sha256/HASH`; Nix asks it before any other (NIX_HASHED_MIRRORS of the
        Nix daemon). What it serves is checked against the lock, like everything.
      '';
    };
  };

  config = mkIf (cfg.enable && cfg.mirror.packages != null) {
    systemd.services.nix-daemon.environment.NIX_HASHED_MIRRORS = cfg.mirror.packages;
  };
}
