"""A GPU: what it is, where it sits, how it is now."""

from appliance.documents.base import Part


class PcieLink(Part):
    """A PCIe link, now and at most. An idle GPU lowers its generation, so `gen` below `max_gen` alone is no fault."""

    gen: int | None = None
    width: int | None = None
    max_gen: int | None = None
    max_width: int | None = None


class GpuProcess(Part):
    """A process that has memory on the GPU, as the driver shows it (none of other containers)."""

    pid: int
    name: str | None = None
    memory_mib: int | None = None


class Gpu(Part):
    index: int
    """The driver's number (bus order); the bus order itself where there is no driver. Not the N of /dev/nvidiaN."""
    pci_bus_id: str | None = None
    """domain:bus:device.function as sysfs writes it ("0000:c1:00.0"); two domains may use the same bus numbers."""
    name: str | None = None
    uuid: str | None = None
    minor: int | None = None
    """The N of /dev/nvidiaN."""
    compute_capability: str | None = None
    memory_mib: int | None = None
    memory_used_mib: int | None = None
    numa_node: int | None = None
    numa_affinity: str | None = None
    """What `nvidia-smi topo -m` prints where it names several nodes ("0-1"): then `numa_node` is null."""
    gpu_numa_id: int | None = None
    """NUMA node of the GPU's own memory (GH200, GB200); not that of its CPUs."""
    cpu_affinity: str | None = None
    """CPUs near the GPU, as a kernel list. See `cpu_affinity_cut` before it is taken for the whole list."""
    cpu_affinity_cut: bool | None = None
    """Whether `cpu_affinity` lacks CPUs because nvidia-smi cuts lists at about 15 characters; null: cannot be told."""
    cpu_affinity_shown: str | None = None
    """What nvidia-smi printed, where a better source in the same text gave a longer `cpu_affinity`."""
    pcie: PcieLink = PcieLink()
    bar1_mib: int | None = None
    power_limit_w: float | None = None
    power_limit_default_w: float | None = None
    power_draw_w: float | None = None
    temperature_c: int | None = None
    throttle_reasons: list[str] | None = None
    """What lowers the clocks now; empty: nothing does. Idle and application clocks are no reasons."""
    mig_enabled: bool | None = None
    mig_devices: list[str] | None = None
    """Profiles of the MIG devices, such as "1g.18gb"."""
    processes: list[GpuProcess] | None = None
