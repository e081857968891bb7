# `nix run .#VERB`: the command line's verbs. Those that need no engine come without its 10 GB.
{ project }:
let
  verb = package: name: {
    type = "app";
    program = "${project.verb package name}/bin/${name}";
    meta.description = "appliance ${name}";
  };
  light = verb project.appliance-environment;
  full = verb project.sglang-appliance;
in
{
  deploy = light "deploy";
  plan = light "plan";
  recon = full "recon"; # reads the engine too
  bench = full "bench";
  verify = full "verify";
  demo = full "demo";
}
