# A host that serves. `nix flake init -t` made it; README.md of the appliance tells how to go on.
{
  inputs.appliance.url = "github:OWNER/REPOSITORY"; # where you got the appliance from

  outputs =
    { appliance, ... }:
    let
      inherit (appliance.inputs) nixpkgs; # the revision that the appliance was built and tested with
    in
    {
      nixosConfigurations.gpu-box = nixpkgs.lib.nixosSystem {
        system = "x86_64-linux";
        modules = [
          appliance.nixosModules.default
          appliance.nixosModules.rtx-pro-6000
          ./host.nix
          ./appliance.nix
        ];
      };
    };
}
