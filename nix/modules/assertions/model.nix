{ config, lib, ... }:
let
  cfg = config.services.sglang-appliance;
  model = cfg.model;
  claims = import ../../lib/claims.nix { inherit lib; };
  # folders that the units do not see (ProtectHome, PrivateTmp)
  hidden = lib.filter (folder: lib.hasPrefix "${folder}/" "${model.path}/") [
    "/home"
    "/root"
    "/run/user"
    "/tmp"
    "/var/tmp"
  ];
in
{
  assertions = lib.mkIf cfg.enable (
    claims.refuse (
      lib.optional (
        builtins.match "/[A-Za-z0-9._/+=@-]+" model.path == null
      ) "model.path is \"${model.path}\"; expected an absolute path of letters, digits and ._/+=@-"
      ++ map (
        folder: "model.path is ${model.path}; the units do not see ${folder}: expected another folder, such as one in /var/lib or /srv"
      ) hidden
      ++ lib.optional (model.repo != null && builtins.match "[0-9a-f]{40}" (toString model.revision) == null)
        "model.revision is ${builtins.toJSON model.revision}; expected the full commit of ${model.repo} (40 hexadecimal digits): a branch or tag would be another model tomorrow"
      ++ lib.optional (
        model.repo == null && model.revision != null
      ) "model.revision is set without model.repo; expected both or neither"
      ++ lib.optional (
        model.repo != null && lib.hasPrefix "${builtins.storeDir}/" model.path
      ) "model.path is in the Nix store, where nothing can be downloaded to"
    )
  );
}
