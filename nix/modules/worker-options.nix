# workers.<name>: one engine server. A submodule; `appliance` is the configuration of services.sglang-appliance.
{ lib, appliance }:
{ name, config, ... }:
let
  inherit (lib) mkOption types;
  own = import ../lib/types.nix { inherit lib; };
  # its place among the workers, by name
  index = lib.lists.findFirstIndex (other: other == name) 0 (lib.attrNames appliance.workers);
  pair = config.role != "aggregated";
in
{
  options = {
    role = mkOption {
      type = types.enum [
        "prefill"
        "decode"
        "aggregated"
      ];
      example = "prefill";
      description = "`aggregated`: it does prefill and decode itself.";
    };

    gpus = mkOption {
      type = types.listOf types.ints.unsigned;
      default = [ ];
      example = [
        0
        1
        2
        3
      ];
      description = "Indices of its GPUs in PCI bus order, as `nvidia-smi` numbers them.";
    };

    numaNode = mkOption {
      type = types.nullOr types.ints.unsigned;
      default = null;
      example = 0;
      description = "NUMA node whose CPUs and memory it gets, and no others. `null`: it is not bound.";
    };

    tpSize = mkOption {
      type = types.ints.positive;
      default = lib.max 1 (lib.length config.gpus);
      defaultText = lib.literalMD "the number of `gpus`, at least 1";
      example = 4;
      description = "Tensor parallelism.";
    };

    port = mkOption {
      type = types.port;
      default = appliance.basePort + 10 + index;
      defaultText = lib.literalMD "`basePort` + 10 + its place among the workers, by name";
      example = 30010;
      description = "Port of its HTTP API.";
    };

    bootstrapPort = mkOption {
      type = types.nullOr types.port;
      default = if pair then appliance.basePort + 20 + index else null;
      defaultText = lib.literalMD "`basePort` + 20 + its place among the workers; `null` for aggregated ones";
      example = 30020;
      description = "Port at which prefill and decode find one another. Decode runs such a server as well.";
    };

    ncclPort = mkOption {
      type = types.nullOr types.port;
      default = appliance.basePort + 30 + index;
      defaultText = lib.literalMD "`basePort` + 30 + its place among the workers, by name";
      example = 30030;
      description = ''
        Port of torch's store. If it is not given, the engine picks one, and two workers that start at once may pick the
        same. It listens on every address, whatever it is told: keep it closed in the firewall.
      '';
    };

    settings = mkOption {
      type = own.settings;
      default = { };
      example = lib.literalExpression ''
        {
          attention-backend = "dsv4";
          mem-fraction-static = 0.85;
          page-size = 256;
        }
      '';
      description = ''
        Further arguments of the engine, by name without the leading dashes. `true`: a switch is given; a list: the words
        after the argument; `null`: it is not given. Checked against the arguments of the pinned engine.
      '';
    };

    environment = mkOption {
      type = own.environment;
      default = { };
      example = {
        NCCL_PROTO = "LL";
      };
      description = "Variables of the engine. They win over those that the module sets.";
    };

    reasons = mkOption {
      type = types.listOf types.str;
      default = [ ];
      example = [ "GPUs 0-3: those of NUMA node 0" ];
      description = "Why it is planned like this. Kept in the plan, of no effect.";
    };

    extraServiceConfig = mkOption {
      type = types.attrsOf types.anything;
      default = { };
      example = {
        MemoryHigh = "200G";
      };
      description = "Directives for the `[Service]` section of its unit. They win over the module's.";
    };

    effectiveSettings = mkOption {
      type = own.settings;
      internal = true;
      readOnly = true;
      description = "`settings` over what the module sets.";
    };

    effectiveEnvironment = mkOption {
      type = own.environment;
      internal = true;
      readOnly = true;
      description = "`environment` over what the module sets.";
    };
  };

  config = {
    effectiveSettings =
      lib.optionalAttrs pair { disaggregation-transfer-backend = appliance.kvTransfer.backend; }
      // lib.optionalAttrs appliance.monitoring.enable { enable-metrics = true; }
      // config.settings;

    effectiveEnvironment =
      {
        HF_HUB_OFFLINE = "1"; # the model is a folder; a server downloads nothing
      }
      # one owner of the binding: systemd binds, the engine's own guess from GPU numbers is not asked (sgl#15678)
      // lib.optionalAttrs (config.numaNode != null) { SGLANG_AUTO_NUMA_BIND = "0"; }
      // lib.optionalAttrs pair appliance.kvTransfer.environment
      // config.environment;
  };
}
