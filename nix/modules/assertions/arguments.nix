# Arguments of the workers against the table of the pinned engine.
{ config, lib, ... }:
let
  cfg = config.services.sglang-appliance;
  claims = import ../../lib/claims.nix { inherit lib; };
  arguments = import ../../lib/arguments.nix { inherit lib; };
  inherit (arguments.table) version;
  known = arguments.table.arguments;

  # arguments that have an option of their own: the fields of appliance/engines/sglang/command.py
  optionOf = {
    device = "engine.device";
    disaggregation-bootstrap-port = "bootstrapPort";
    disaggregation-mode = "role";
    host = "host";
    model-path = "model.path";
    nccl-port = "ncclPort";
    port = "port";
    served-model-name = "model.servedName";
    tp-size = "tpSize";
  };

  # the first spelling of every other spelling
  aliases = lib.listToAttrs (
    lib.concatLists (
      lib.mapAttrsToList (name: entry: map (alias: lib.nameValuePair alias name) (entry.aliases or [ ])) known
    )
  );

  unknown =
    name:
    let
      dashed = lib.replaceStrings [ "_" ] [ "-" ] (lib.removePrefix "--" name);
      meant = aliases.${dashed} or dashed;
    in
    if aliases ? ${name} then
      "expected its first spelling, ${meant}"
    else if known ? ${meant} then
      "not an argument of SGLang ${version}; did you mean ${meant}?"
    else
      "not an argument of SGLang ${version}";

  fits =
    kind: value:
    {
      switch = builtins.isBool value;
      toggle = builtins.isBool value;
      int = builtins.isInt value;
      float = builtins.isInt value || builtins.isFloat value;
      count = builtins.isInt value || (builtins.isString value && builtins.match "[0-9.]+[kKmMgG]?" value != null);
      # a number is as good a word as any: disaggregation-ib-device = 0
      string = builtins.isString value || builtins.isInt value || builtins.isFloat value;
    }
    .${kind};

  nameOfKind = {
    switch = "true or false";
    toggle = "true or false";
    int = "a whole number";
    float = "a number";
    count = "a whole number, or one such as \"64k\"";
    string = "a string";
  };

  wrong =
    entry: value:
    let
      values = lib.toList value;
      isList = entry.list or false;
      choices = map arguments.word entry.choices;
      outside = lib.filter (one: !(lib.elem (arguments.word one) choices)) values;
    in
    if builtins.isList value && !isList then
      "is a list; expected one value, ${nameOfKind.${entry.kind}}"
    else if value == [ ] then
      "is an empty list; expected null where it is not to be given"
    else if !(lib.all (fits entry.kind) values) then
      "is ${builtins.toJSON value}; expected ${lib.optionalString isList "a list, each "}${nameOfKind.${entry.kind}}"
    else if entry ? choices && outside != [ ] then
      "is ${builtins.toJSON value}; expected one of ${lib.concatStringsSep ", " choices}"
    else
      null;

  fault =
    name: value:
    if optionOf ? ${name} || optionOf ? ${aliases.${name} or ""} then
      "has an option of its own: set ${optionOf.${name} or optionOf.${aliases.${name}}}"
    else if !(known ? ${name}) then
      unknown name
    else
      wrong known.${name} value;

  faults =
    worker: settings:
    lib.concatLists (
      lib.mapAttrsToList (
        name: value:
        let
          words = fault name value;
        in
        lib.optional (words != null) "workers.${worker}.settings.${name}: ${words}"
      ) (arguments.given settings)
    );
in
{
  assertions = lib.mkIf cfg.enable (
    claims.refuse (
      lib.concatLists (lib.mapAttrsToList (name: worker: faults name worker.effectiveSettings) cfg.workers)
    )
  );

  warnings = lib.mkIf (cfg.enable && cfg.engine.version != version) [
    "services.sglang-appliance.engine.version is ${cfg.engine.version}; arguments are checked against SGLang ${version}"
  ];
}
