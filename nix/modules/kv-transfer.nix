# How the KV cache goes from prefill to decode.
{ config, lib, ... }:
let
  inherit (lib) mkOption types;
  own = import ../lib/types.nix { inherit lib; };
  cfg = config.services.sglang-appliance;
  transfer = cfg.kvTransfer;
in
{
  options.services.sglang-appliance.kvTransfer = {
    backend = mkOption {
      type = types.str;
      default = "nixl";
      example = "mooncake";
      description = "The engine's transfer backend, on prefill and on decode.";
    };

    nixlBackend = mkOption {
      type = types.nullOr types.str;
      default = null;
      example = "UCX";
      description = "NIXL's own backend. `null`: the engine's default, UCX.";
    };

    nixlParameters = mkOption {
      type = own.environment;
      default = { };
      example = {
        num_workers = "2";
      };
      description = "Parameters of NIXL's backend.";
    };

    heartbeatInterval = mkOption {
      type = types.ints.positive;
      default = 2;
      example = 5;
      description = ''
        Seconds between decode's looks at its prefill. It notices after two misses; a prefill that is back by then is
        never seen as a new one, and decode goes on with the dead one's addresses. So `restartDelay` is longer.
      '';
    };

    environment = mkOption {
      type = own.environment;
      internal = true;
      readOnly = true;
      description = "Variables that prefill and decode get.";
    };
  };

  config.services.sglang-appliance.kvTransfer.environment =
    {
      SGLANG_HOST_IP = cfg.host;
      SGLANG_DISAGGREGATION_HEARTBEAT_INTERVAL = toString transfer.heartbeatInterval;
    }
    // lib.optionalAttrs (transfer.nixlBackend != null) {
      SGLANG_DISAGGREGATION_NIXL_BACKEND = transfer.nixlBackend;
    }
    // lib.optionalAttrs (transfer.nixlParameters != { }) {
      SGLANG_DISAGGREGATION_NIXL_BACKEND_PARAMS = builtins.toJSON transfer.nixlParameters;
    };
}
