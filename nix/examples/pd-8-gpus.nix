# DeepSeek-V4-Flash on eight GPUs in two NUMA nodes: prefill on node 0, decode on node 1.
{
  services.sglang-appliance = {
    enable = true;
    topology = "pd";
    model = {
      servedName = "deepseek-v4-flash";
      path = "/srv/models/DeepSeek-V4-Flash";
    };

    workers.prefill = {
      role = "prefill";
      gpus = [
        0
        1
        2
        3
      ];
      numaNode = 0;
      settings = {
        attention-backend = "dsv4";
        chunked-prefill-size = 8192;
        kv-cache-dtype = "fp8_e4m3";
        mem-fraction-static = 0.85;
        page-size = 256;
      };
    };

    workers.decode = {
      role = "decode";
      gpus = [
        4
        5
        6
        7
      ];
      numaNode = 1;
      settings = {
        attention-backend = "dsv4";
        kv-cache-dtype = "fp8_e4m3";
        mem-fraction-static = 0.88;
        page-size = 256;
      };
    };
  };
}
