# What is served: replace it by the output of `appliance plan --format nix`, run on the machine itself.
{
  services.sglang-appliance = {
    enable = true;
    topology = "single";
    model = {
      servedName = "qwen3-8b";
      path = "/srv/models/Qwen3-8B";
    };
    workers.single = {
      role = "aggregated";
      gpus = [ 0 ];
    };
  };
}
