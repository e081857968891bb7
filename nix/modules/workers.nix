# One unit a worker. Each is restarted alone: nothing but the model ties one to another.
{ config, lib, ... }:
let
  inherit (lib)
    mapAttrs'
    mkIf
    mkOption
    nameValuePair
    optional
    optionalAttrs
    types
    ;
  cfg = config.services.sglang-appliance;
  cuda = cfg.engine.device == "cuda";

  # compiled kernels belong to the very packages that compiled them (flashinfer#2708, vllm#49165), and to one worker:
  # two that start at once would write the same files
  closure = builtins.substring 0 12 (builtins.hashString "sha256" "${cfg.package}");
  cacheOf = name: "sglang-appliance/${closure}/${name}";

  unit = name: worker: {
    description = "SGLang appliance: ${worker.role} worker ${name}";
    requires = [ "sglang-model.service" ] ++ optional cuda "sglang-devices.service";
    after = [
      "network.target"
      "sglang-model.service"
    ]
    ++ optional cuda "sglang-devices.service";
    partOf = [ "sglang-appliance.target" ];
    # NixOS restarts the unit if its own part of the plan changed, and not for a change of another worker
    restartTriggers = [
      (builtins.toJSON {
        inherit (cfg.plan) model engine host;
        worker = lib.filter (part: part.name == name) cfg.plan.workers;
      })
    ];
    environment = {
      HOME = "/var/cache/${cacheOf name}";
      XDG_CACHE_HOME = "/var/cache/${cacheOf name}";
      TORCHINDUCTOR_CACHE_DIR = "/var/cache/${cacheOf name}/torchinductor"; # else in /tmp, gone at every restart
    };
    unitConfig.StartLimitIntervalSec = 0; # restarts go on, with growing pauses
    serviceConfig =
      import ./hardening.nix
      // {
        Type = "notify"; # ready: it has generated a token
        NotifyAccess = "all"; # `launch` becomes the engine; a companion process reports for it
        ExecStart = "${cfg.package}/bin/appliance launch ${name} --plan /etc/sglang-appliance/plan.json";
        TimeoutStartSec = cfg.startTimeout;
        WatchdogSec = 120; # a health request waits its turn behind a busy batch, 20 s at most
        Restart = "always";
        RestartSec = cfg.restartDelay;
        RestartSteps = 6;
        RestartMaxDelaySec = 300;
        RestartPreventExitStatus = 2; # a bad plan or argument does not get better
        KillMode = "mixed"; # SIGTERM to the server, which drains; its schedulers end with it
        TimeoutStopSec = cfg.stopTimeout;
        CacheDirectory = cacheOf name;
        CacheDirectoryMode = "0700";
        LimitCORE = 0; # the memory of a hung worker is hundreds of gigabytes
        LimitMEMLOCK = "infinity"; # pinned host buffers, and what NIXL registers
        LimitNOFILE = 1048576;
        OOMScoreAdjust = -500; # other things go first
        ReadOnlyPaths = [ "-${cfg.model.path}" ];
      }
      // optionalAttrs cuda {
        # the exceptions that CUDA needs; the device groups exist once the driver is loaded
        DeviceAllow = [
          "char-nvidia* rw"
          "char-nvidia-uvm rw"
          "char-nvidia-caps rw"
        ];
        SupplementaryGroups = [
          "render"
          "video"
        ];
      }
      // optionalAttrs (!cuda) { PrivateDevices = true; }
      // optionalAttrs (worker.numaNode != null) {
        # set before exec, so that every byte it allocates is bound, not only those after its start
        CPUAffinity = "numa"; # the CPUs of NUMAMask
        NUMAPolicy = "bind";
        NUMAMask = toString worker.numaNode;
        AllowedMemoryNodes = toString worker.numaNode;
      }
      // optionalAttrs (cfg.sharedCredentials != [ ]) { LoadCredential = cfg.sharedCredentials; }
      // worker.extraServiceConfig;
  };
in
{
  options.services.sglang-appliance = {
    workers = mkOption {
      type = types.attrsOf (
        types.submodule (
          import ./worker-options.nix {
            inherit lib;
            appliance = cfg;
          }
        )
      );
      default = { };
      example = lib.literalExpression ''
        {
          prefill = {
            role = "prefill";
            gpus = [ 0 1 2 3 ];
            numaNode = 0;
          };
          decode = {
            role = "decode";
            gpus = [ 4 5 6 7 ];
            numaNode = 1;
          };
        }
      '';
      description = "The engine servers, by name. `NAME` runs as `sglang-NAME.service`.";
    };
    workerUnits = mkOption {
      type = types.listOf types.str;
      internal = true;
      readOnly = true;
      description = "Names of the workers' units.";
    };
    sharedCredentials = mkOption {
      type = types.listOf types.str;
      internal = true;
      readOnly = true;
      description = "LoadCredential of workers and router.";
    };
  };

  config = {
    services.sglang-appliance = {
      workerUnits = map (name: "sglang-${name}.service") (lib.attrNames cfg.workers);
      sharedCredentials = lib.mapAttrsToList (name: file: "${name}:${file}") (
        removeAttrs cfg.credentials [ "hf-token" ]
      );
    };
    systemd.services = mkIf cfg.enable (
      mapAttrs' (name: worker: nameValuePair "sglang-${name}" (unit name worker)) cfg.workers
    );
  };
}
