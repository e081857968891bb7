# From settings to the words of a command line.
{ lib }:
rec {
  # The first spelling of every argument, as the engine's own parser lists it (made by tools/engine-arguments).
  table = builtins.fromJSON (builtins.readFile ../engine-arguments.json);

  # null (or, in a list, nothing) stands for "not given"
  given = lib.filterAttrs (_: value: value != null);

  # true -> --name; false -> nothing, or --no-name where there is that form; a list -> --name a b c.
  # Sorted by name, so that equal settings are equal words.
  words = settings: lib.concatLists (lib.mapAttrsToList wordsOf (given settings));

  wordsOf =
    name: value:
    if value == true then
      [ "--${name}" ]
    else if value == false then
      lib.optional (kindOf name == "toggle") "--no-${name}"
    else
      [ "--${name}" ] ++ map word (lib.toList value);

  # toString would print 0.85 as 0.850000
  word = value: if builtins.isString value then value else builtins.toJSON value;

  kindOf = name: (table.arguments.${name} or { }).kind or null;
}
