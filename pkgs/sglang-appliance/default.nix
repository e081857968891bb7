# What a host runs: `appliance`, `hf` and the environment's python, with everything that engines compile at run time
# from this closure, and their caches in a folder named after it: another closure never meets their content.
{
  stdenvNoCC,
  stdenv,
  ninja,
  numactl,
  coreutils,
  bash,
  cuda-toolkit,
  engine-environment,
}:
let
  tools = builtins.concatStringsSep ":" (
    map (package: "${package}/bin") [
      cuda-toolkit
      stdenv.cc
      ninja
      numactl
      coreutils
    ]
  );
  substitutions = {
    "@bash@" = "${bash}";
    "@engine@" = "${engine-environment}";
    "@cudaHome@" = "${cuda-toolkit}";
    "@compiler@" = "${stdenv.cc}";
    "@tools@" = tools;
  };
in
stdenvNoCC.mkDerivation {
  name = "sglang-appliance";
  wrapper = builtins.replaceStrings (builtins.attrNames substitutions) (builtins.attrValues substitutions) (
    builtins.readFile ./wrapper.sh
  );
  passAsFile = [ "wrapper" ];
  buildCommand = ''
    mkdir -p $out/bin
    key=$(basename $out)
    for command in appliance hf python; do
      sed -e "s|@command@|$command|" -e "s|@key@|''${key%%-*}|" "$wrapperPath" > $out/bin/$command
      chmod +x $out/bin/$command
    done
  '';
}
