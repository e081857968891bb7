# The model: downloaded if it comes from the hub, checked in any case. Workers start after it, and not at all if it fails.
{ config, lib, ... }:
let
  inherit (lib)
    mkIf
    mkOption
    optionalAttrs
    types
    ;
  cfg = config.services.sglang-appliance;
  model = cfg.model;
  fromHub = model.repo != null;
  hasToken = cfg.credentials ? hf-token;

  # the token: fetch reads the unit's credential hf-token; it is in no variable
  fetch =
    "${cfg.package}/bin/appliance fetch ${model.repo} --revision ${toString model.revision} --to ${model.path} --flat"
    + lib.optionalString (model.verify == "hashes") " --deep";
  verify =
    "${cfg.package}/bin/appliance recon model ${model.path}"
    + lib.optionalString (model.verify == "hashes" && !fromHub) " --hash";
in
{
  options.services.sglang-appliance.model = {
    path = mkOption {
      type = types.str;
      default = "/var/lib/sglang-appliance/models/${model.servedName}";
      defaultText = lib.literalExpression ''"/var/lib/sglang-appliance/models/''${model.servedName}"'';
      example = "/srv/models/DeepSeek-V4-Flash";
      description = ''
        Folder of the weights: there already, or downloaded to. Readable by user `sglang`; ext4 or xfs, not btrfs or ZFS
        (whole-host freezes under weights were reported, r6k).
      '';
    };
    servedName = mkOption {
      type = types.strMatching "[^/[:space:]][^[:space:]]*";
      example = "deepseek-v4-flash";
      description = "Name that requests use. The router refuses requests with another one.";
    };
    repo = mkOption {
      type = types.nullOr (types.strMatching "[A-Za-z0-9._-]+/[A-Za-z0-9._-]+");
      default = null;
      example = "deepseek-ai/DeepSeek-V4-Flash";
      description = "Repository on the hub to download from. `null`: the folder is brought there by other means.";
    };
    revision = mkOption {
      type = types.nullOr types.str;
      default = null;
      example = "0123456789abcdef0123456789abcdef01234567";
      description = "Commit of `repo`, in full: a branch or tag would be another model tomorrow.";
    };
    verify = mkOption {
      type = types.enum [
        "hashes"
        "headers"
      ];
      default = if fromHub then "hashes" else "headers";
      defaultText = lib.literalMD "`hashes` with `repo`, `headers` without";
      example = "headers";
      description = ''
        `headers`: every weight file is as long as its header says and nothing is missing (a second). `hashes`: moreover
        its sha256 is what the hub lists (with `repo`) or what the download recorded; it reads everything once, which
        warms the page cache for the workers. A file that is wrong is downloaded again.
      '';
    };
  };

  config = mkIf cfg.enable {
    systemd.services.sglang-model = {
      description = "SGLang appliance: model ${model.servedName}";
      # when a download has failed and a later one succeeds, what required it is started then
      wants = lib.optional fromHub "network-online.target" ++ [ "sglang-ready.service" ];
      after = lib.optional fromHub "network-online.target";
      environment = {
        HOME = "/var/cache/sglang-appliance/model";
      }
      // optionalAttrs (cfg.mirror.models != null) { HF_ENDPOINT = cfg.mirror.models; };
      unitConfig.RequiresMountsFor = [ model.path ];
      serviceConfig =
        import ./hardening.nix
        // {
          Type = "oneshot";
          RemainAfterExit = true;
          ExecStart = lib.optional fromHub fetch ++ [ verify ];
          TimeoutStartSec = "infinity"; # 146 GB take as long as the line needs
          StateDirectory = "sglang-appliance";
          StateDirectoryMode = "0755";
          CacheDirectory = "sglang-appliance/model";
          CacheDirectoryMode = "0700";
          UMask = "0022"; # weights are no secret, and are read by other tools too
          MemoryDenyWriteExecute = true;
          IOSchedulingClass = "idle"; # of a running appliance, when the model is downloaded anew
        }
        // (
          if fromHub then
            {
              # what is downloaded is kept: a retry goes on where the last one broke off
              Restart = "on-failure";
              RestartSec = 30;
              RestartSteps = 5;
              RestartMaxDelaySec = 600;
              ReadWritePaths = [ "-${model.path}" ];
            }
          else
            { PrivateNetwork = true; }
        )
        // optionalAttrs (fromHub && hasToken) {
          LoadCredential = [ "hf-token:${cfg.credentials.hf-token}" ];
        };
    };
    systemd.tmpfiles.rules = lib.optional fromHub "d ${model.path} 0755 sglang sglang - -";
  };
}
