# Does an environment import, on a machine without a GPU and without its driver? $out has one line a package.
{ stdenvNoCC }:
environment:
stdenvNoCC.mkDerivation {
  name = "${environment.name}-imports";
  needsDriver = builtins.concatStringsSep " " (builtins.attrNames (import ./needs-driver.nix));
  buildCommand = ''
    export HOME=$TMPDIR
    ${environment}/bin/python ${./imports.py} > "$TMPDIR/report"
    cp "$TMPDIR/report" $out
  '';
}
