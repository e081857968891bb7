# A stand-in for the part of nixpkgs' lib that the modules use, for machines without nixpkgs. Where the real one is there,
# tests compare what both make of every configuration.
let
  inherit (builtins)
    attrNames
    attrValues
    concatLists
    concatMap
    concatStringsSep
    elem
    elemAt
    filter
    foldl'
    functionArgs
    genList
    groupBy
    head
    isAttrs
    isBool
    isFloat
    isFunction
    isInt
    isList
    isString
    length
    listToAttrs
    mapAttrs
    match
    removeAttrs
    replaceStrings
    stringLength
    substring
    typeOf
    ;

  general = {
    inherit
      attrNames
      attrValues
      concatLists
      concatStringsSep
      elem
      filter
      genList
      groupBy
      head
      length
      listToAttrs
      mapAttrs
      replaceStrings
      ;
    inherit (builtins)
      all
      any
      isAttrs
      lessThan
      sort
      ;
    boolToString = value: if value then "true" else "false";
    concatMapStringsSep = separator: f: list: concatStringsSep separator (map f list);
    count = f: list: length (filter f list);
    filterAttrs =
      f: set: removeAttrs set (filter (name: !f name set.${name}) (attrNames set));
    hasInfix = infix: text: length (builtins.split (escape infix) text) > 1;
    hasPrefix = prefix: text: substring 0 (stringLength prefix) text == prefix;
    last = list: elemAt list (length list - 1);
    lists.findFirstIndex =
      f: default: list:
      let
        found = filter (index: f (elemAt list index)) (genList (index: index) (length list));
      in
      if found == [ ] then default else head found;
    mapAttrs' = f: set: listToAttrs (map (name: f name set.${name}) (attrNames set));
    mapAttrsToList = f: set: map (name: f name set.${name}) (attrNames set);
    max = a: b: if a > b then a else b;
    nameValuePair = name: value: { inherit name value; };
    optional = condition: value: if condition then [ value ] else [ ];
    optionalAttrs = condition: set: if condition then set else { };
    optionals = condition: list: if condition then list else [ ];
    optionalString = condition: text: if condition then text else "";
    removePrefix =
      prefix: text:
      if general.hasPrefix prefix text then
        substring (stringLength prefix) (stringLength text) text
      else
        text;
    toList = value: if isList value then value else [ value ];
    unique = foldl' (seen: value: if elem value seen then seen else seen ++ [ value ]) [ ];
  };

  escape = replaceStrings [ "." "[" "(" "*" "+" "?" "|" "\\" ] [ "\\." "\\[" "\\(" "\\*" "\\+" "\\?" "\\|" "\\\\" ];

  options = {
    literalExpression = text: {
      _type = "literalExpression";
      inherit text;
    };
    literalMD = text: {
      _type = "literalMD";
      inherit text;
    };
    isOption = value: isAttrs value && value._type or null == "option";
    mkOption = attributes: attributes // { _type = "option"; };
    mkEnableOption =
      name:
      options.mkOption {
        default = false;
        example = true;
        description = "Whether to enable ${name}.";
        type = types.bool;
      };
  };

  priorities = {
    plain = 100;
    optionDefault = 1500;
  };
  properties = {
    mkIf = condition: content: {
      _type = "if";
      inherit condition content;
    };
    mkMerge = contents: {
      _type = "merge";
      inherit contents;
    };
    mkOverride = priority: content: {
      _type = "override";
      inherit priority content;
    };
    mkDefault = properties.mkOverride 1000;
    mkForce = properties.mkOverride 50;
  };

  # definitions of what is below: mkIf c { a = 1; } is { a = mkIf c 1; }
  pushDown =
    set:
    {
      merge = concatMap pushDown set.contents;
      "if" = map (mapAttrs (_: properties.mkIf set.condition)) (pushDown set.content);
      override = map (mapAttrs (_: properties.mkOverride set.priority)) (pushDown set.content);
    }
    .${set._type or ""} or [ set ];

  # definitions that hold, each with its priority
  discharge =
    value:
    {
      merge = concatMap discharge value.contents;
      "if" = if value.condition then discharge value.content else [ ];
      override = map (one: one // { inherit (value) priority; }) (discharge value.content);
    }
    .${if isAttrs value then value._type or "" else ""} or [
      {
        inherit value;
        priority = priorities.plain;
      }
    ];

  show = concatStringsSep ".";

  mergeDefinitions =
    type: loc: definitions:
    let
      holding = concatMap discharge definitions;
      strongest = foldl' (least: one: if one.priority < least then one.priority else least) 100000 holding;
      values = map (one: one.value) (filter (one: one.priority == strongest) holding);
      bad = filter (value: !type.check value) values;
    in
    if values == [ ] then
      throw "The option `${show loc}' was accessed but has no value defined. Try setting the option."
    else if bad != [ ] then
      throw "A definition for option `${show loc}' is not of type `${type.description}'."
    else
      type.merge loc values;

  equal =
    loc: values:
    if general.all (value: value == head values) values then
      head values
    else
      throw "The option `${show loc}' has conflicting definition values";

  simple = description: check: {
    inherit check description;
    merge = equal;
    getSubOptions = _: { };
    descriptionClass = "noun";
  };
  # a description within another: in parentheses unless it is of one of these classes
  phrase =
    classes: type: if elem type.descriptionClass classes then type.description else "(${type.description})";
  element = phrase [
    "noun"
    "composite"
  ];
  alternative = phrase [
    "noun"
    "conjunction"
  ];
  lastAlternative = phrase [
    "noun"
    "conjunction"
    "composite"
  ];

  types = {
    anything = simple "anything" (_: true) // {
      merge =
        loc: values:
        if general.all isAttrs values && length values > 1 then
          (types.attrsOf types.anything).merge loc values
        else
          equal loc values;
    };
    raw = simple "raw value" (_: true) // {
      merge = _: head;
    };
    bool = simple "boolean" isBool;
    float = simple "floating point number" isFloat;
    int = simple "signed integer" isInt;
    str = simple "string" isString;
    package = simple "package" (value: value.type or null == "derivation");
    port = types.ints.between 0 65535 // {
      description = "16 bit unsigned integer; between 0 and 65535 (both inclusive)";
    };
    ints = {
      between = low: high: simple "integer" (value: isInt value && low <= value && value <= high);
      positive = simple "positive integer, meaning >0" (value: isInt value && value > 0) // {
        descriptionClass = "nonRestrictiveClause";
      };
      unsigned = simple "unsigned integer, meaning >=0" (value: isInt value && value >= 0) // {
        descriptionClass = "nonRestrictiveClause";
      };
    };
    strMatching =
      pattern:
      simple "string matching the pattern ${pattern}" (value: isString value && match pattern value != null);
    enum =
      values:
      simple "one of ${general.concatMapStringsSep ", " builtins.toJSON values}" (value: elem value values)
      // {
        descriptionClass = "conjunction";
      };
    nullOr =
      type:
      type
      // {
        description = "null or ${alternative type}";
        descriptionClass = "conjunction";
        check = value: value == null || type.check value;
        merge = loc: values: if elem null values then equal loc values else type.merge loc values;
      };
    either =
      a: b:
      simple "${
        if a.descriptionClass == "nonRestrictiveClause" then "${a.description}," else alternative a
      } or ${lastAlternative b}" (value: a.check value || b.check value)
      // {
        descriptionClass = "conjunction";
        merge = loc: values: (if general.all a.check values then a else b).merge loc values;
      };
    oneOf = list: foldl' types.either (head list) (builtins.tail list);
    listOf =
      type:
      simple "list of ${element type}" isList
      // {
        descriptionClass = "composite";
        getSubOptions = prefix: type.getSubOptions (prefix ++ [ "*" ]);
        merge =
          loc: values:
          concatMap (value: mergeElement type loc value) (concatLists values);
      };
    attrsOf =
      type:
      simple "attribute set of ${element type}" isAttrs
      // {
        descriptionClass = "composite";
        getSubOptions = prefix: type.getSubOptions (prefix ++ [ "<name>" ]);
        merge =
          loc: values:
          let
            sets = concatMap pushDown values;
            names = general.unique (concatMap attrNames sets);
            definitions = name: concatMap (set: general.optional (set ? ${name}) set.${name}) sets;
            defined = filter (name: concatMap discharge (definitions name) != [ ]) names;
          in
          listToAttrs (
            map (name: general.nameValuePair name (mergeDefinitions type (loc ++ [ name ]) (definitions name))) defined
          );
      };
    submodule =
      module:
      simple "submodule" (value: isAttrs value || isFunction value)
      // {
        descriptionClass = null;
        getSubOptions =
          prefix:
          removeAttrs
            (evalModules {
              modules = [
                module
                { _module.args.name = general.last prefix; }
              ];
              inherit prefix;
            }).options
            [ "_module" ];
        merge =
          loc: values:
          removeAttrs
            (evalModules {
              modules = [
                module
                { _module.args.name = general.last loc; }
              ]
              ++ values;
              prefix = loc;
            }).config
            [ "_module" ];
      };
  };
  mergeElement =
    type: loc: value:
    let
      definitions = discharge value;
    in
    general.optional (definitions != [ ]) (mergeDefinitions type loc (map (one: one.value) definitions));

  evalModules =
    {
      modules,
      prefix ? [ ],
    }:
    let
      collect =
        module:
        let
          loaded = if isAttrs module || isFunction module then module else import module;
          applied = if isFunction loaded then loaded (mapAttrs (name: _: argument name) (functionArgs loaded)) else loaded;
          structured = applied ? options || applied ? config;
        in
        concatMap collect (applied.imports or [ ])
        ++ [
          {
            options = applied.options or { };
            config = if structured then applied.config or { } else removeAttrs applied [ "imports" ];
          }
        ];
      argument = name: given.${name} or config._module.args.${name};
      given = {
        inherit config lib;
        options = evaluated.options;
      };
      collected = [
        {
          options._module.args = options.mkOption { type = types.attrsOf types.raw; };
          config = { };
        }
      ]
      ++ concatMap collect modules;

      merged = a: b:
        a
        // mapAttrs (
          name: value: if a ? ${name} && !options.isOption value then merged a.${name} value else value
        ) b;
      declared = foldl' merged { } (map (module: module.options) collected);

      evaluate =
        loc: tree: configs:
        let
          sets = concatMap pushDown configs;
          unknown = filter (name: !(tree ? ${name})) (concatMap attrNames sets);
          below = name: concatMap (set: general.optional (set ? ${name}) set.${name}) sets;
          one =
            name: option:
            if options.isOption option then
              evaluateOption (loc ++ [ name ]) option (below name)
            else
              evaluate (loc ++ [ name ]) option (below name);
          parts = mapAttrs one tree;
        in
        if unknown != [ ] then
          throw "The option `${show (loc ++ [ (head unknown) ])}' does not exist."
        else
          {
            config = mapAttrs (_: part: part.config) parts;
            options = mapAttrs (_: part: part.options) parts;
          };

      evaluateOption =
        loc: option: definitions:
        let
          default = general.optional (option ? default) (
            properties.mkOverride priorities.optionDefault option.default
          );
        in
        {
          config = mergeDefinitions option.type loc (definitions ++ default);
          options = option // {
            inherit loc;
          };
        };

      evaluated = evaluate prefix declared (map (module: module.config) collected);
      inherit (evaluated) config;
    in
    evaluated;

  lib =
    general
    // options
    // properties
    // {
      inherit evalModules types;
      strings = general;
      attrsets = general;
    };
in
lib
