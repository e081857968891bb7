# Wrong configurations, in words, before anything is built.
{
  imports = [
    ./arguments.nix
    ./gpus.nix
    ./model.nix
    ./names.nix
    ./pair.nix
    ./parallelism.nix
    ./ports.nix
    ./secrets.nix
    ./topology.nix
  ];
}
