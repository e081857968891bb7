{
  description = "One machine with many GPUs as one serving appliance: SGLang, prefill and decode apart, KV cache over NIXL";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-26.05";

  outputs =
    { self, nixpkgs }:
    let
      system = "x86_64-linux"; # the wheels of nix/lock are for this one
      pkgs = nixpkgs.legacyPackages.${system};
      project = import ./pkgs { inherit pkgs; };
    in
    {
      packages.${system} = import ./nix/packages.nix { inherit project; };
      legacyPackages.${system} = project; # each wheel by name: wheels.torch
      apps.${system} = import ./nix/apps.nix { inherit project; };
      checks.${system} = import ./nix/checks.nix { inherit self pkgs project; };
      devShells.${system}.default = import ./nix/shell.nix { inherit pkgs project; };
      formatter.${system} = pkgs.nixfmt-tree;

      overlays.default = final: _: { inherit (import ./pkgs { pkgs = final; }) sglang-appliance; };

      nixosModules = import ./nix/nixos-modules.nix { inherit project; };
      nixosConfigurations = import ./nix/hosts.nix { inherit self nixpkgs system; };

      # A host that is no NixOS, for `appliance deploy`: systemdHost [ ./appliance.nix ]
      lib.systemdHost = import ./nix/systemd-host.nix {
        inherit nixpkgs system;
        module = self.nixosModules.default;
        generation = pkgs.callPackage ./nix/systemd-generation.nix { };
      };

      templates.default = {
        path = ./nix/template;
        description = "A host that serves a model with this appliance";
      };
    };
}
