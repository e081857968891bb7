# A configuration evaluated to what a host would get of it: units as text, files, users, ports; or what is refused.
{
  lib,
  module, # a module, or a path of one
  package ? "/nix/store/00000000000000000000000000000000-sglang-appliance",
  system ? "/nix/store/00000000000000000000000000000000-system", # what has bin/bash and the like; "" is this machine
}:
let
  derivation = name: outPath: {
    type = "derivation";
    inherit name outPath;
  };
  pkgs = {
    sglang-appliance = derivation "sglang-appliance" package;
    bash = derivation "bash" system;
    gawk = derivation "gawk" system;
    pciutils = derivation "pciutils" system;
  };
  host = lib.evalModules {
    modules = [
      ./standin/host.nix
      ../../../nix/modules
      module
      { _module.args.pkgs = pkgs; }
    ];
  };
  inherit (host) config;
in
{
  inherit (host) options;
  result = {
    # sorted: in which order modules are merged is no part of the answer
    refused = lib.sort lib.lessThan (
      map (assertion: assertion.message) (lib.filter (assertion: !assertion.assertion) config.assertions)
    );
    inherit (config)
      boot
      powerManagement
      users
      warnings
      ;
    units = config.rendered;
    etc = lib.mapAttrs (_: file: file.text or (builtins.readFile file.source)) (
      removeAttrs config.environment.etc [ "sglang-appliance/package" ] # a folder
    );
    ports = config.networking.firewall.allowedTCPPorts;
    tmpfiles = config.systemd.tmpfiles.rules;
  };
}
