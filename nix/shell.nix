# `nix develop`: what the repository is worked on with; the Python packages come by `make environment`.
{ pkgs, project }:
pkgs.mkShell {
  packages = [
    project.cuda-compiler
    pkgs.python311
    pkgs.uv
    pkgs.ruff
    pkgs.nixfmt-tree
    pkgs.ninja
  ];
  env.CUDA_HOME = "${project.cuda-compiler}";
}
