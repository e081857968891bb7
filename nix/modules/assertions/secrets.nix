# The store, and the plan in /etc, are readable by everybody on the machine.
{ config, lib, ... }:
let
  cfg = config.services.sglang-appliance;
  claims = import ../../lib/claims.nix { inherit lib; };
  secretArguments = [
    "admin-api-key"
    "api-key"
    "control-plane-api-keys"
    "ssl-keyfile-password"
    "tenant-api-key"
  ];
  secretVariables = [
    "AWS_SECRET_ACCESS_KEY"
    "HF_TOKEN"
    "HUGGING_FACE_HUB_TOKEN"
    "HUGGINGFACE_HUB_TOKEN"
    "SGLANG_API_KEY"
  ];
  inStore = lib.filterAttrs (_: file: lib.hasPrefix builtins.storeDir (toString file)) cfg.credentials;
  relative = lib.filterAttrs (_: file: !lib.hasPrefix "/" (toString file)) cfg.credentials;
  oddName = lib.filter (name: builtins.match "[A-Za-z0-9._-]+" name == null) (lib.attrNames cfg.credentials);
  servers = lib.mapAttrs' (name: lib.nameValuePair "workers.${name}") cfg.workers // {
    inherit (cfg) router;
  };
  leaks =
    at: server:
    map (
      name: "${at}.settings.${name} would be readable by everybody in the store and in `ps`; it has no place here"
    ) (lib.filter (name: server.settings.${name} or null != null) secretArguments)
    ++ map (
      name: "${at}.environment.${name} would be readable by everybody in the store; expected credentials.hf-token or another credential"
    ) (lib.filter (name: server.environment ? ${name}) secretVariables);
in
{
  assertions = lib.mkIf cfg.enable (
    claims.refuse (
      lib.mapAttrsToList (
        name: file: "credentials.${name} is ${toString file}: a secret in the Nix store is readable by everybody; expected a file outside, such as /run/secrets/${name}"
      ) inStore
      ++ lib.mapAttrsToList (
        name: file: "credentials.${name} is \"${toString file}\"; expected an absolute path of a file on the host, such as /run/secrets/${name}"
      ) relative
      ++ map (name: "credentials.\"${name}\": expected a name of letters, digits and ._-") oddName
      ++ lib.concatLists (lib.mapAttrsToList leaks servers)
    )
  );
}
