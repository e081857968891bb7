# One GPU, one worker, no router.
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
      settings = {
        context-length = 32768;
        mem-fraction-static = 0.85;
      };
    };
  };
}
