# The project's packages over the stand-in: what the tests build, by attribute.
{ python, compiler }:
let
  pkgs = import ./stub.nix { inherit python compiler; };
  project = import ../../pkgs { inherit pkgs; };
in
project
// {
  inherit pkgs;

  # What a host runs, with the small environment in the place of the engine's 10 GB.
  small-sglang-appliance = pkgs.callPackage ../../pkgs/sglang-appliance {
    cuda-toolkit = project.cuda-compiler;
    engine-environment = project.appliance-environment;
  };
  small-import-check = pkgs.callPackage ../../pkgs/environment/imports.nix { } {
    environment = project.appliance-environment;
    cudaHome = project.cuda-compiler;
  };
}
