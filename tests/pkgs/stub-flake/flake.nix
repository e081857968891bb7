# In the place of the input nixpkgs, to evaluate flake.nix without it: nothing of this is built.
{
  outputs =
    _:
    let
      pkgs = import ./stub.nix {
        python = ./.;
        compiler = "none";
      };
      named = name: pkgs.stdenv.mkDerivation {
        inherit name;
        buildCommand = "";
      };
    in
    {
      legacyPackages.x86_64-linux = pkgs // {
        mkShell = _: named "shell";
        nixfmt-tree = named "nixfmt-tree";
        runCommand = name: _: _: named name;
        python311 = named "python311";
        uv = named "uv";
        ruff = named "ruff";
      };
      lib.nixosSystem = _: { config.system.build.toplevel = named "system"; };
    };
}
