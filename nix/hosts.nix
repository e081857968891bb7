# Example hosts, whole: nix/examples with the least that NixOS needs beside.
{
  self,
  nixpkgs,
  system,
}:
let
  host =
    example:
    nixpkgs.lib.nixosSystem {
      inherit system;
      modules = [
        self.nixosModules.default
        self.nixosModules.rtx-pro-6000
        example
        {
          boot.loader.systemd-boot.enable = true;
          fileSystems."/" = {
            device = "/dev/disk/by-label/nixos";
            fsType = "ext4";
          };
          nixpkgs.config.allowUnfree = true; # the driver
          system.stateVersion = "26.05";
        }
      ];
    };
in
{
  pd-8-gpus = host ./examples/pd-8-gpus.nix;
  replicas = host ./examples/replicas.nix;
  one-gpu = host ./examples/one-gpu.nix;
}
