# `nix build .#NAME`
{ project }:
{
  default = project.sglang-appliance;
  inherit (project)
    sglang-appliance
    engine-environment
    appliance-environment
    cuda-toolkit
    cuda-compiler
    kernels
    demo
    ;
}
