# What Prometheus and Grafana need, as files and values; both are configured elsewhere (docs/nixos.md).
{ config, lib, ... }:
let
  inherit (lib) mapAttrsToList mkOption types;
  cfg = config.services.sglang-appliance;
  monitoring = cfg.monitoring;
  job = name: labels: port: {
    job_name = "sglang-${name}";
    scrape_interval = monitoring.scrapeInterval;
    static_configs = [
      {
        targets = [ (if lib.hasInfix ":" cfg.host then "[${cfg.host}]:${toString port}" else "${cfg.host}:${toString port}") ];
        labels = labels // {
          model = cfg.model.servedName;
        };
      }
    ];
  };
  worker =
    name: worker:
    job name {
      inherit (worker) role;
      worker = name;
    } worker.port;
in
{
  options.services.sglang-appliance.monitoring = {
    enable = mkOption {
      type = types.bool;
      default = true;
      example = false;
      description = ''
        Workers publish metrics, and `/etc/sglang-appliance` holds what scrapes and shows them: `prometheus.json`
        (for Prometheus' `scrape_config_files`), `grafana/provider.yaml` and `grafana/dashboards/`.
      '';
    };
    scrapeInterval = mkOption {
      type = types.strMatching "[0-9]+(ms|s|m)";
      default = "5s";
      example = "15s";
      description = "How often Prometheus asks.";
    };
    scrapeConfigs = mkOption {
      type = types.listOf (types.attrsOf types.anything);
      readOnly = true;
      defaultText = lib.literalMD "one job a worker, and one for the router";
      description = "For `services.prometheus.scrapeConfigs` on the same host.";
    };
  };

  config = {
    services.sglang-appliance.monitoring.scrapeConfigs =
      mapAttrsToList worker cfg.workers
      ++ lib.optional cfg.router.enable (job "router" { worker = "router"; } cfg.router.metricsPort);

    environment.etc = lib.mkIf (cfg.enable && monitoring.enable) {
      "sglang-appliance/prometheus.json".text = builtins.toJSON { scrape_configs = monitoring.scrapeConfigs; } + "\n";
      "sglang-appliance/grafana/dashboards/sglang.json".source = ../monitoring/dashboard.json;
      "sglang-appliance/grafana/provider.yaml".source = ../monitoring/provider.yaml;
    };
  };
}
