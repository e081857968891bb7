# Types of settings: what a command line can carry.
{ lib }:
let
  inherit (lib) types;
  scalar = types.oneOf [
    types.bool
    types.int
    types.float
    types.str
  ];
in
{
  settings = types.attrsOf (types.nullOr (types.either scalar (types.listOf scalar)));
  environment = types.attrsOf types.str;
  seconds = types.either types.ints.unsigned types.float;
}
