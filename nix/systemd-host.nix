# A generation for a systemd distribution out of modules as a NixOS host has them: NixOS writes the units, and of all that
# it makes only the appliance's own is taken.
{
  nixpkgs,
  system,
  module,
  generation,
}:
modules:
let
  inherit (nixpkgs) lib;
  host = nixpkgs.lib.nixosSystem {
    inherit system;
    modules = [
      module
      {
        boot.isContainer = true; # nothing of a machine's own is asked for
        system.stateVersion = "26.05";
      }
    ]
    ++ modules;
  };
  inherit (host) config;
  own = lib.hasPrefix "sglang-";
  prefix = "sglang-appliance/";
  etc = lib.filterAttrs (
    path: _: lib.hasPrefix prefix path && path != "${prefix}package"
  ) config.environment.etc;
  failed = map (assertion: assertion.message) (
    lib.filter (assertion: !assertion.assertion) config.assertions
  );
in
if failed != [ ] then
  throw "\nFailed assertions:\n${lib.concatMapStringsSep "\n" (message: "- ${message}") failed}"
else
  generation {
    units = lib.mapAttrs (_: unit: unit.text) (
      lib.filterAttrs (name: unit: own name && unit.enable) config.systemd.units
    );
    files = lib.mapAttrs' (
      path: file: lib.nameValuePair (lib.removePrefix prefix path) (
        if file.text != null then file.text else builtins.readFile file.source
      )
    ) etc;
    inherit (config.services.sglang-appliance) package;
    tmpfiles = lib.filter (lib.hasInfix " sglang sglang ") config.systemd.tmpfiles.rules;
  }
