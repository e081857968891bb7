"""Processors, memory nodes and the kernel's settings."""

from appliance.documents.base import Part


class Processor(Part):
    model: str | None = None
    architecture: str | None = None
    vendor: str | None = None
    family: int | None = None
    sockets: int | None = None
    cores_per_socket: int | None = None
    threads_per_core: int | None = None
    cpus: int | None = None
    """Logical CPUs that are there, online or not."""
    online: str | None = None
    offline: str | None = None
    hypervisor: str | None = None
    """Vendor of the hypervisor where the machine is a guest: then NUMA and PCIe may be made up."""
    governor: str | None = None
    """Frequency governor of the first CPU."""


class NumaNode(Part):
    id: int
    cpus: str | None
    """The node's CPUs as a kernel list; "" for a node of memory only; null where the source does not say."""
    memory_mib: int | None = None
    free_mib: int | None = None
    gpus: list[int] = []


class KernelModule(Part):
    name: str
    version: str | None = None
    parameters: dict[str, str] | None = None
    """Parameters as /sys/module shows them; null where they cannot be read."""


class KernelSettings(Part):
    """What the kernel was told, as far as it matters to GPUs and their peers."""

    cmdline: str | None = None
    numa_balancing: bool | None = None
    transparent_hugepage: str | None = None
    modules: list[KernelModule] | None = None
    """Those loaded among the NVIDIA driver's, peer memory's and vfio's."""
    nvidia_parameters: dict[str, str] | None = None
    """/proc/driver/nvidia/params, without those at their neutral values."""
