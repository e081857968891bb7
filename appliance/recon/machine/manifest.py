"""What is read of a machine: the files and commands that readers may ask a Source for.

The script for machines far away is made from this list, so that one round trip brings all of it.
"""

TEXT_BYTES = 262_144
ANSWER_BYTES = 65_536

COMMANDS: dict[str, list[str]] = {
    "smi_query": ["nvidia-smi", "-q"],
    "smi_csv": [
        "nvidia-smi",
        "--query-gpu=index,pci.bus_id,name,uuid,compute_cap,memory.total,memory.used,temperature.gpu,power.limit,"
        "power.default_limit,power.draw,driver_version",
        "--format=csv",
    ],
    "smi_topology": ["nvidia-smi", "topo", "-m"],
    "smi_list": ["nvidia-smi", "-L"],
    "services": ["systemctl", "list-units", "--type=service", "--all", "--plain", "--no-legend", "--no-pager"],
    "units": ["systemctl", "show", "--property=Id,Environment", "sglang-*.service"],
    "listeners": ["ss", "-H", "-l", "-t", "-n", "-p"],
    "architecture": ["uname", "-m"],
    "nvcc": ["nvcc", "--version"],
    "nvcc_in_usr_local": ["/usr/local/cuda/bin/nvcc", "--version"],
    "fabric_manager": ["nv-fabricmanager", "--version"],
    "container_toolkit": ["nvidia-ctk", "--version"],
    "docker": ["docker", "--version"],
    "python": ["python3", "--version"],
    "libc": ["getconf", "GNU_LIBC_VERSION"],
}
"""Commands by name. None writes anything, and each may be absent."""

TOGETHER: list[list[str]] = [
    ["smi_query"],
    ["smi_csv", "smi_list"],
    ["smi_topology"],
    ["services", "units", "listeners", "architecture", "libc"],
    ["nvcc", "nvcc_in_usr_local", "fabric_manager", "container_toolkit", "docker", "python"],
]
"""Commands that run one after the other far away; the lines run side by side. The slow ones have one of their own."""

LINES = [
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/numa_balancing",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/offline",
    "/sys/devices/system/cpu/present",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "/sys/devices/system/cpu/cpu*/topology/physical_package_id",
    "/sys/devices/system/node/node*/distance",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/net/*/operstate",
    "/sys/class/net/*/speed",
    "/sys/class/net/*/mtu",
    "/sys/class/infiniband/*/ports/1/state",
    "/sys/class/infiniband/*/ports/1/rate",
    "/sys/class/infiniband/*/ports/1/link_layer",
    "/sys/kernel/iommu_groups/*/type",
    "/sys/module/nvidia*/version",
    "/sys/module/nvidia*/parameters/*",
    "/sys/module/gdrdrv/version",
    "/sys/module/vfio_pci/version",
    "/sys/module/vfio_pci/parameters/*",
    "/sys/module/vfio_iommu_type1/version",
    "/sys/module/vfio_iommu_type1/parameters/*",
]
"""Files of one line, by pattern: a shell reads them without starting a process."""

PCI_CLASSES = ("0x0300", "0x0302", "0x0200", "0x0207", "0x0604", "0x0280")
"""VGA and 3D controllers, Ethernet, InfiniBand, other network controllers, PCI bridges (PCI code and ID assignment)."""

PCI_LINES = [
    "vendor",
    "device",
    "numa_node",
    "local_cpulist",
    "current_link_speed",
    "current_link_width",
    "max_link_speed",
    "max_link_width",
]
"""Files of each PCI device of those classes, besides its class, driver, group and configuration space."""

PCI_TEXTS = ["aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal"]
"""The same, of several lines: error counts since boot, with the total last (Documentation/ABI/testing)."""

TEXTS = [
    "/proc/cmdline",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/self/status",
    "/proc/self/environ",
    "/proc/mounts",
    "/proc/net/tcp",
    "/proc/net/tcp6",
    "/proc/driver/nvidia/version",
    "/proc/driver/nvidia/params",
    "/etc/os-release",
    "/sys/devices/system/node/node*/meminfo",
    "/sys/devices/system/node/node*/cpulist",
]
"""Files of several lines, by pattern; and cpulist, which some kernels give to readers of single bytes as empty."""

LINKS = ["/sys/class/net/*/device", "/sys/class/infiniband/*/device"]
"""Links whose target matters, besides those of PCI devices."""

PROCESS_NAMES = ("python*", "pt_main*", "sglang*", "sgl*", "vllm*", "VLLM*", "smg*", "trtllm*", "tritonserver*")
"""Process names (comm) that an engine may go by; only these processes' arguments are looked at."""

PROCESS_FILES = ["cmdline", "environ", "status"]

DEFAULT_PORTS = {"sglang": 30000, "vllm": 8000}

ANSWERS = ["/server_info", "/get_server_info", "/version", "/v1/models"]
"""What engines are asked over HTTP, on loopback: GET, and nothing that changes their state."""

MODEL_ROOTS = ["/models", "/data/models", "/srv/models", "/mnt/models", "/opt/models", "/var/lib/models"]
"""Folders that people keep models in, besides the hub cache and those that are named."""

SPACES = [
    ("/", "root"),
    ("/nix/store", "store"),
    ("/var/lib", "state"),
    ("/var/cache", "cache"),
    ("/tmp", "temporary"),
    ("/dev/shm", "shared memory"),
]
"""Folders whose file system is reported, besides those of models and caches."""
