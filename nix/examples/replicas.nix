# Two replicas of TP4, one a NUMA node, behind a router that sends a prompt where its prefix is cached. The model comes
# from the hub, with a token that systemd hands to the download and to nothing else.
{ lib, ... }:
let
  replica = node: {
    role = "aggregated";
    gpus = lib.genList (index: 4 * node + index) 4;
    numaNode = node;
    settings.mem-fraction-static = 0.85;
    environment.NCCL_PROTO = "LL";
  };
in
{
  services.sglang-appliance = {
    enable = true;
    topology = "replicas";
    model = {
      servedName = "deepseek-v4-flash";
      repo = "deepseek-ai/DeepSeek-V4-Flash";
      revision = "0123456789abcdef0123456789abcdef01234567"; # put the commit here that you have tested
    };
    credentials.hf-token = "/run/secrets/hf-token";
    workers.replica-0 = replica 0;
    workers.replica-1 = replica 1;
    router.host = "0.0.0.0";
    openFirewall = true; # a trusted network: nobody is asked for a password
  };
}
