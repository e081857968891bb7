# The machine: disks, network, users, driver. Put what nixos-generate-config wrote beside it and import it here.
{ config, pkgs, ... }:
{
  imports = [ ]; # ./hardware-configuration.nix

  networking.hostName = "gpu-box";
  services.openssh.enable = true;

  nixpkgs.config.allowUnfree = true; # the driver
  hardware.graphics.enable = true;
  services.xserver.videoDrivers = [ "nvidia" ]; # also without a display: it is what loads the driver
  hardware.nvidia.open = true; # Blackwell has no other

  # metrics of the appliance, on this host
  services.prometheus = {
    enable = true;
    scrapeConfigs = config.services.sglang-appliance.monitoring.scrapeConfigs;
  };

  system.stateVersion = "26.05";
}
