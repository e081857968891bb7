# What every unit of the appliance gives up. docs/nixos.md has the score of each by `systemd-analyze security`.
{
  User = "sglang";
  Group = "sglang";
  UMask = "0077";
  CapabilityBoundingSet = "";
  AmbientCapabilities = "";
  NoNewPrivileges = true;
  LockPersonality = true;
  PrivateTmp = true;
  ProtectClock = true;
  ProtectControlGroups = true;
  ProtectHome = true;
  ProtectHostname = true;
  ProtectKernelLogs = true;
  ProtectKernelModules = true;
  ProtectKernelTunables = true;
  ProtectProc = "invisible"; # of other users: prefill and decode, one user, see one another
  ProtectSystem = "strict";
  RemoveIPC = false; # it would take shared memory away from the other worker when one stops
  RestrictAddressFamilies = [
    "AF_INET"
    "AF_INET6"
    "AF_NETLINK" # NCCL and UCX list interfaces with it
    "AF_UNIX"
  ];
  RestrictNamespaces = true;
  RestrictRealtime = true;
  RestrictSUIDSGID = true;
  SystemCallArchitectures = "native";
  SystemCallErrorNumber = "EPERM";
  # @system-service has @ipc (shared memory, process_vm_readv of UCX) and @resources (set_mempolicy, mbind)
  SystemCallFilter = [
    "@system-service"
    "~@privileged"
  ];
  DevicePolicy = "closed";
}
