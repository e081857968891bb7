# A configuration evaluated to what a host would get of it: units as text, files, users, ports; or what is refused.
{
  lib,
  module, # a module, or a path of one
  package ? "/nix/store/00000000000000000000000000000000-sglang-appliance",
}:
let
  derivation = name: outPath: {
    type = "derivation";
    inherit name outPath;
  };
  pkgs = {
    sglang-appliance = derivation "sglang-appliance" package;
    bash = derivation "bash" "/nix/store/00000000000000000000000000000000-bash";
    pciutils = derivation "pciutils" "/nix/store/00000000000000000000000000000000-pciutils";
  };
  host = lib.evalModules {
    modules = [
      ./standin/host.nix
      ../../nix/modules
      module
      { _module.args.pkgs = pkgs; }
    ];
  };
  inherit (host) config;
in
{
  inherit (host) options;
  result = {
    refused = map (assertion: assertion.message) (lib.filter (assertion: !assertion.assertion) config.assertions);
    inherit (config) boot powerManagement warnings;
    # evaluated only where asked for: a refused configuration has no plan
    inherit (config) users;
    units = config.rendered;
    etc = lib.mapAttrs (_: file: file.text or (builtins.readFile file.source)) config.environment.etc;
    ports = config.networking.firewall.allowedTCPPorts;
    tmpfiles = config.systemd.tmpfiles.rules;
  };
}
