# Secrets: files outside the store, which systemd hands to a unit, readable by that unit only.
{ lib, ... }:
{
  options.services.sglang-appliance.credentials = lib.mkOption {
    # not types.path: a Nix path would be copied into the store as soon as it is part of a string
    type = lib.types.attrsOf lib.types.str;
    default = { };
    example = {
      hf-token = "/run/secrets/hf-token";
    };
    description = ''
      Files with secrets, by the name of the credential (`LoadCredential=`). `hf-token` goes to the unit that downloads
      the model, and to no other. All others go to workers and router, at `/run/credentials/UNIT/NAME`. A file in the
      Nix store is refused: everybody can read it there.
    '';
  };
}
