# `nix flake check`: the packages build, the engine's environment imports, the example hosts evaluate.
{
  self,
  pkgs,
  project,
}:
let
  # Evaluated, not built: a check that builds three whole systems would say nothing more about this project.
  evaluated =
    name: host:
    pkgs.runCommand "host-${name}" { } ''
      echo ${builtins.unsafeDiscardStringContext host.config.system.build.toplevel.drvPath} > $out
    '';
in
{
  inherit (project) kernels appliance;
  imports = project.import-check;
}
// builtins.mapAttrs evaluated self.nixosConfigurations
