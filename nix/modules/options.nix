# What concerns the whole appliance.
{ lib, pkgs, ... }:
let
  inherit (lib) mkEnableOption mkOption types;
  own = import ../lib/types.nix { inherit lib; };
in
{
  options.services.sglang-appliance = {
    enable = mkEnableOption "the serving appliance: SGLang workers behind a router";

    package = mkOption {
      type = types.package;
      default = pkgs.sglang-appliance;
      defaultText = lib.literalExpression "pkgs.sglang-appliance";
      description = ''
        The appliance with its engine: `bin/appliance` and `bin/hf` in one environment. The flake's module sets the
        flake's own, built with the nixpkgs that it was tested with.
      '';
    };

    topology = mkOption {
      type = types.enum [
        "pd"
        "replicas"
        "single"
      ];
      example = "pd";
      description = ''
        `pd`: prefill and decode workers behind a router. `replicas`: aggregated workers behind a router that sends a
        prompt where its prefix is cached. `single`: one aggregated worker and no router.
      '';
    };

    engine = {
      version = mkOption {
        type = types.str;
        default = (import ../lib/arguments.nix { inherit lib; }).table.version;
        defaultText = lib.literalMD "the release whose arguments this module knows";
        example = "0.5.23";
        description = "SGLang's release. A worker refuses to start with another one.";
      };
      device = mkOption {
        type = types.enum [
          "cuda"
          "cpu"
        ];
        default = "cuda";
        example = "cpu";
        description = "What the engine computes on. `cpu` is for trying things out, with a small model.";
      };
    };

    host = mkOption {
      type = types.str;
      default = "127.0.0.1";
      example = "::1";
      description = ''
        Loopback address of the workers: they ask nobody for a password. Clients elsewhere reach the router, at
        `router.host`.
      '';
    };

    basePort = mkOption {
      type = types.port;
      default = 30000;
      example = 31000;
      description = "Ports that are not given are counted from here: the router's first, then blocks of ten.";
    };

    startTimeout = mkOption {
      type = own.seconds;
      default = 3600;
      example = 900;
      description = ''
        Seconds that a worker may take until it has generated a token. An hour fits 146 GB of weights from a disk that
        reads 100 MB/s (25 minutes), and the compilation of kernels at the first start.
      '';
    };

    stopTimeout = mkOption {
      type = own.seconds;
      default = 60;
      example = 300;
      description = "Seconds that requests in flight have to end after SIGTERM; what still runs then is killed.";
    };

    restartDelay = mkOption {
      type = types.ints.unsigned;
      default = 5;
      example = 10;
      description = ''
        Seconds before a worker that ended is started again. After repeated failures it grows to five minutes. With less
        than two and a half heartbeats (`kvTransfer.heartbeatInterval`), decode could miss that its prefill is a new one.
      '';
    };

    reasons = mkOption {
      type = types.listOf types.str;
      default = [ ];
      example = [ "topology pd was asked for" ];
      description = "Why it is planned like this. Kept in the plan, of no effect.";
    };
  };
}
