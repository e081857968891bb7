# Modules for a host's flake. The default one brings this flake's own package, built with its own pinned nixpkgs.
{ project }:
{
  default =
    { lib, ... }:
    {
      imports = [ ./modules ];
      services.sglang-appliance.package = lib.mkDefault project.sglang-appliance;
    };
  rtx-pro-6000 = ./hardware/rtx-pro-6000.nix;
}
