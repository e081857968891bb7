# A stand-in for the part of NixOS that the modules set: options of the same names, and units as text the way NixOS
# writes them (nixos/lib/systemd-lib.nix), without what NixOS adds to every unit (PATH, LOCALE_ARCHIVE, TZDIR).
{ config, lib, ... }:
let
  inherit (lib) mkOption types;

  anything = mkOption {
    type = types.anything;
    default = { };
    description = "stand-in";
  };
  listOfUnits = mkOption {
    type = types.listOf types.str;
    default = [ ];
    description = "stand-in";
  };
  text = mkOption {
    type = types.str;
    default = "";
    description = "stand-in";
  };
  section = mkOption {
    type = types.attrsOf types.anything;
    default = { };
    description = "stand-in";
  };

  unitOptions = {
    description = text;
    after = listOfUnits;
    before = listOfUnits;
    partOf = listOfUnits;
    requires = listOfUnits;
    wantedBy = listOfUnits;
    wants = listOfUnits;
    unitConfig = section;
  };
  serviceOptions = unitOptions // {
    environment = section;
    path = mkOption {
      type = types.listOf types.package;
      default = [ ];
      description = "stand-in";
    };
    restartTriggers = mkOption {
      type = types.listOf types.str;
      default = [ ];
      description = "stand-in";
    };
    serviceConfig = section;
  };

  word =
    value:
    if value == true then
      "true"
    else if value == false then
      "false"
    else
      toString value;
  lines =
    attributes:
    lib.concatLists (
      lib.mapAttrsToList (name: value: map (one: "${name}=${word one}") (lib.toList value)) attributes
    );
  render = sections: lib.concatStringsSep "\n" sections + "\n";

  unitSection =
    unit:
    let
      joined = name: units: lib.optionalAttrs (units != [ ]) { ${name} = lib.concatStringsSep " " units; };
    in
    [ "[Unit]" ]
    ++ lines (
      { Description = unit.description; }
      // joined "After" unit.after
      // joined "Before" unit.before
      // joined "PartOf" unit.partOf
      // joined "Requires" unit.requires
      // joined "Wants" unit.wants
      // unit.unitConfig
    );
  triggers =
    service:
    lib.optional (
      service.restartTriggers != [ ]
    ) "X-Restart-Triggers=${builtins.hashString "sha256" (toString service.restartTriggers)}";
  installSection =
    unit:
    lib.optionals (unit.wantedBy != [ ]) [
      ""
      "[Install]"
      "WantedBy=${lib.concatStringsSep " " unit.wantedBy}"
    ];
  serviceText =
    service:
    render (
      unitSection service
      ++ triggers service
      ++ [
        ""
        "[Service]"
      ]
      ++ lib.mapAttrsToList (name: value: "Environment=${builtins.toJSON "${name}=${value}"}") service.environment
      ++ lines service.serviceConfig
      ++ installSection service
    );
  targetText = target: render (unitSection target ++ installSection target);

  unitsOf =
    suffix: toText:
    lib.mapAttrs' (name: unit: lib.nameValuePair "${name}.${suffix}" (toText unit));
in
{
  options = {
    assertions = mkOption {
      type = types.listOf types.anything;
      default = [ ];
      description = "stand-in";
    };
    warnings = listOfUnits;
    boot = anything;
    environment.etc = mkOption {
      type = types.attrsOf types.anything;
      default = { };
      description = "stand-in";
    };
    networking.firewall.allowedTCPPorts = mkOption {
      type = types.listOf types.port;
      default = [ ];
      description = "stand-in";
    };
    powerManagement = anything;
    systemd.services = mkOption {
      type = types.attrsOf (types.submodule { options = serviceOptions; });
      default = { };
      description = "stand-in";
    };
    systemd.targets = mkOption {
      type = types.attrsOf (types.submodule { options = unitOptions; });
      default = { };
      description = "stand-in";
    };
    systemd.tmpfiles.rules = listOfUnits;
    users = anything;
    rendered = mkOption {
      type = types.attrsOf types.str;
      default = { };
      description = "Units as text, by name.";
    };
  };
  config.rendered =
    unitsOf "service" serviceText config.systemd.services // unitsOf "target" targetText config.systemd.targets;
}
