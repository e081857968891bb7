# The project's packages over the stand-in: what the tests build, by attribute.
{ python }:
let
  pkgs = import ./stub.nix { inherit python; };
  project = import ../../pkgs { inherit pkgs; mirror = ""; };
in
project // { inherit pkgs; }
