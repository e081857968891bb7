# The router: the front door of prefill and decode, and of replicas.
{ config, lib, ... }:
let
  inherit (lib)
    mkEnableOption
    mkIf
    mkOption
    optionalAttrs
    types
    ;
  own = import ../lib/types.nix { inherit lib; };
  cfg = config.services.sglang-appliance;
  router = cfg.router;

  # the values and reasons of appliance/engines/smg/settings.py
  defaults = {
    worker-startup-check-interval = 1;
    health-check-interval-secs = 5;
    health-check-timeout-secs = 10;
    health-success-threshold = 1;
    health-failure-threshold = 2;
    shutdown-grace-period-secs = 5;
    disable-tokenizer-autoload = true;
    log-level = "warn";
  }
  // optionalAttrs (cfg.topology == "replicas") { policy = "cache_aware"; };
in
{
  options.services.sglang-appliance.router = {
    enable = mkEnableOption "the router" // {
      default = cfg.topology != "single";
      defaultText = lib.literalMD "unless the topology is `single`";
    };
    host = mkOption {
      type = types.str;
      default = cfg.host;
      defaultText = lib.literalExpression "host";
      example = "0.0.0.0";
      description = "Address that it listens on. It asks nobody for a password: see `openFirewall`.";
    };
    port = mkOption {
      type = types.port;
      default = cfg.basePort;
      defaultText = lib.literalExpression "basePort";
      example = 8000;
      description = "Port of the OpenAI-compatible API.";
    };
    metricsPort = mkOption {
      type = types.port;
      default = cfg.basePort + 1;
      defaultText = lib.literalExpression "basePort + 1";
      example = 30001;
      description = "Port of its metrics, on `host` (not on `router.host`).";
    };
    settings = mkOption {
      type = own.settings;
      default = { };
      example = {
        policy = "least_load";
      };
      description = ''
        Further arguments of the router (smg), by name without the leading dashes, over those that the module sets:
        health checks every 5 s, a grace period of 5 s, and for replicas the cache-aware policy.
      '';
    };
    environment = mkOption {
      type = own.environment;
      default = { };
      example = {
        RUST_LOG = "info";
      };
      description = "Variables of the router.";
    };
    reasons = mkOption {
      type = types.listOf types.str;
      default = [ ];
      example = [ "policy cache_aware: a prompt goes where its prefix is cached" ];
      description = "Why it is planned like this. Kept in the plan, of no effect.";
    };
    effectiveSettings = mkOption {
      type = own.settings;
      internal = true;
      readOnly = true;
      description = "`settings` over what the module sets.";
    };
  };

  config = {
    services.sglang-appliance.router.effectiveSettings = defaults // router.settings;

    systemd.services.sglang-router = mkIf (cfg.enable && router.enable) {
      description = "SGLang appliance: router";
      # not tied to the workers: it waits for those that are missing, and outlives those that end. Ordered after them, so
      # that it is stopped before them and lets requests in flight finish.
      requires = [ "sglang-model.service" ];
      wants = cfg.workerUnits;
      after = [
        "network.target"
        "sglang-model.service"
      ]
      ++ cfg.workerUnits;
      partOf = [ "sglang-appliance.target" ];
      restartTriggers = [
        (builtins.toJSON {
          inherit (cfg.plan) model host router;
          workers = map (worker: {
            inherit (worker) role port bootstrap_port;
          }) cfg.plan.workers;
        })
      ];
      environment.HOME = "/tmp"; # its own: what it imports looks for a cache
      unitConfig.StartLimitIntervalSec = 0;
      serviceConfig =
        import ./hardening.nix
        // {
          Type = "notify"; # ready: it has its workers
          NotifyAccess = "all";
          ExecStart = "${cfg.package}/bin/appliance launch router --plan /etc/sglang-appliance/plan.json";
          TimeoutStartSec = 120; # it is started after its workers; while one is missing it is tried again
          WatchdogSec = 60; # it answers, with workers or without
          Restart = "always";
          RestartSec = 2;
          RestartSteps = 5;
          RestartMaxDelaySec = 60;
          RestartPreventExitStatus = 2;
          KillMode = "mixed";
          TimeoutStopSec = cfg.stopTimeout;
          LimitCORE = 0;
          LimitNOFILE = 1048576;
          PrivateDevices = true;
          MemoryDenyWriteExecute = true;
          ProcSubset = "pid";
        }
        // optionalAttrs (cfg.sharedCredentials != [ ]) { LoadCredential = cfg.sharedCredentials; };
    };
  };
}
