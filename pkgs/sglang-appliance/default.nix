# What a host runs: `appliance`, `hf` and the environment's python, with everything that engines compile at run time
# from this closure, and their caches in a folder named after it: another closure never meets their content.
{ stdenvNoCC, stdenv, ninja, numactl, coreutils, bash, cuda-toolkit, engine-environment }:
let
  bin = builtins.concatStringsSep ":" (map (package: "${package}/bin") [ cuda-toolkit stdenv.cc ninja numactl coreutils ]);
  filled = builtins.replaceStrings
    [ "@bash@" "@engine@" "@cudaHome@" "@compiler@" "@tools@" ]
    [ "${bash}" "${engine-environment}" "${cuda-toolkit}" "${stdenv.cc}" bin ]
    (builtins.readFile ./wrapper.sh);
in
stdenvNoCC.mkDerivation {
  name = "sglang-appliance";
  inherit filled;
  passAsFile = [ "filled" ];
  buildCommand = ''
    mkdir -p $out/bin
    key=$(basename $out)
    for command in appliance hf python; do
      sed -e "s|@command@|$command|" -e "s|@key@|''${key%%-*}|" "$filledPath" > $out/bin/$command
      chmod +x $out/bin/$command
    done
  '';
}
