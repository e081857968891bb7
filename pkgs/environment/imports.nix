# Does an environment import, on a machine without a GPU and without its driver? $out has one line a package.
{ stdenvNoCC }:
{ environment, cudaHome }:
stdenvNoCC.mkDerivation {
  name = "${environment.name}-imports";
  CUDA_HOME = cudaHome;
  excused = builtins.attrNames (import ./not-importable.nix);
  buildCommand = ''
    export HOME=$TMPDIR
    ${environment}/bin/python ${./imports.py} > "$TMPDIR/report"
    cp "$TMPDIR/report" $out
  '';
}
