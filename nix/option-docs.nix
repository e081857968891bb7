# The options of a configuration as a list, for documentation: name, type, default, example, description.
{ lib }:
let
  isShown = option: !(option.internal or false);

  # values that are told by words or code instead of themselves
  told = value: if value ? _type then { ${value._type} = value.text; } else { inherit value; };

  entry = option: {
    name = lib.concatStringsSep "." option.loc;
    type = option.type.description;
    description = option.description or "";
    readOnly = option.readOnly or false;
    default =
      if option ? defaultText then
        told option.defaultText
      else if option ? default then
        { value = option.default; }
      else
        null;
    example = if option ? example then (if lib.isAttrs option.example then told option.example else { value = option.example; }) else null;
  };

  list =
    tree:
    lib.concatLists (
      lib.mapAttrsToList (
        name: part:
        if name == "_module" then
          [ ]
        else if !(lib.isOption part) then
          list part
        else if isShown part then
          [ (entry part) ] ++ list (part.type.getSubOptions part.loc)
        else
          [ ]
      ) tree
    );
in
list
