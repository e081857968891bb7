# Hosts with RTX PRO 6000 Blackwell cards on PCIe: settings seen working in public reports, each with the reports that it
# answers. They are defaults: set the same option, and yours wins (kernel parameters are added up; of two alike the kernel
# takes the last). None was measured again here.
{ lib, pkgs, ... }:
let
  inherit (lib) mkDefault;
in
{
  boot = {
    kernelParams = [
      # Collectives hang with all GPUs at 100 % where the IOMMU translates what GPUs send one another (r6k#15,
      # vllm#51513). Pass-through keeps the IOMMU for other devices; iommu=off was used as well.
      "iommu=pt"
      # Links that sleep do not always wake up: link down, Xid 79 (open-gpu-kernel-modules#1151).
      "pcie_aspm=off"
      "pcie_port_pm=off"
    ];

    extraModprobeConfig = ''
      # UVM stalls with heterogeneous memory management (r6k, pitfalls of the host)
      options nvidia_uvm uvm_disable_hmm=1
    '';

    kernel.sysctl = {
      # workers are bound: moving their pages between nodes only costs (r6k; TensorRT-LLM#18117)
      "kernel.numa_balancing" = mkDefault 0;
    };
  };

  # small messages wait for cores that clock up (r6k)
  powerManagement.cpuFreqGovernor = mkDefault "performance";

  # half rate between GPUs, or none at all (NVIDIA/nccl#1999, NVIDIA/nccl#2079, r6k#15)
  systemd.services.clear-acs = {
    description = "Clear PCIe ACS, for traffic between GPUs";
    wantedBy = [ "multi-user.target" ];
    before = [ "sglang-devices.service" ];
    path = [
      pkgs.gawk
      pkgs.pciutils
    ];
    unitConfig.ConditionVirtualization = "!container";
    serviceConfig = {
      Type = "oneshot";
      RemainAfterExit = true;
      ExecStart = "${pkgs.bash}/bin/bash ${./clear-acs.sh}";
      # it writes to the configuration space of PCI devices, and does nothing else
      CapabilityBoundingSet = "CAP_SYS_ADMIN CAP_SYS_RAWIO";
      NoNewPrivileges = true;
      PrivateNetwork = true;
      PrivateTmp = true;
      ProtectHome = true;
      ProtectSystem = "strict";
    };
  };

  # Not set here, since it depends on the board:
  # - BAR1 of 96 GiB (firmware: above 4G decoding and resizable BAR; r6k hardware/)
  # - NPS1 in the firmware, for one NUMA node a socket
  # - boot.extraModprobeConfig = "options nvidia NVreg_RegistryDwords=..." with the ForceP2P keys, for boards whose slots
  #   are wired to the CPU (noonghunna/club-3090)
  # - a driver branch without silent hangs (open-gpu-kernel-modules#1159, #1111)
  # - cards with the same switch partition: which ranks send to which is the plan's affair (r6k hardware/collapse-report.md)
}
