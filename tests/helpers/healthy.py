"""The reference machine as it should be, with engine, model and plan: facts on which no rule finds anything.

Numbers of the machine are those of a public report (8x RTX PRO 6000, two EPYC 9575F; local-inference-lab/rtx6kpro,
logs/asus-report), and those of the model follow from DeepSeek-V4-Flash's public configuration. What no public report
has (services, file systems, IOMMU groups) is written as recon writes it.
"""

from appliance.documents import (
    EngineReport,
    Gpu,
    Link,
    MachineReport,
    ModelReport,
    NumaNode,
    Plan,
    PlannedEngine,
    PlannedModel,
    Router,
    ServerOption,
    Tool,
    TransferBackend,
    TransportModule,
    Worker,
)
from appliance.documents.engine import KernelLimit, KernelStep, Pin
from appliance.documents.machine import (
    Acs,
    Aer,
    FileSystem,
    Iommu,
    IommuGroup,
    KernelModule,
    KernelSettings,
    ModelFolder,
    Nic,
    PciDevice,
    PcieLink,
    Processor,
    Service,
    Software,
)
from appliance.documents.model import Attention, Experts, Integrity, KvCache, ModelFile, Mtp, RankBytes
from appliance.preflight.facts import Facts

NAME = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
BUSES = ["06", "07", "75", "76", "84", "85", "f4", "f5"]
NODE_CPUS = ["0-63,128-191", "64-127,192-255"]
MODEL_PATH = "/models/deepseek-v4-flash"
GENERATION_5 = PcieLink(gen=5, width=16, max_gen=5, max_width=16)


def gpu(index: int, **changes) -> Gpu:
    """One of the eight."""
    node = index // 4
    fields = {
        "index": index,
        "pci_bus_id": f"0000:{BUSES[index]}:00.0",
        "name": NAME,
        "compute_capability": "12.0",
        "memory_mib": 97887,
        "memory_used_mib": 0,
        "numa_node": node,
        "cpu_affinity": NODE_CPUS[node],
        "cpu_affinity_cut": False,
        "pcie": GENERATION_5,
        "bar1_mib": 131072,
        "power_limit_w": 600.0,
        "power_limit_default_w": 600.0,
        "temperature_c": 26,
        "throttle_reasons": [],
        "mig_enabled": False,
        "processes": [],
    }
    return Gpu(**fields | changes)


def links() -> list[Link]:
    """Pairs behind one switch are PIX, two pairs a socket NODE, across sockets SYS."""

    def kind(a: int, b: int) -> str:
        return "PIX" if a // 2 == b // 2 else "NODE" if a // 4 == b // 4 else "SYS"

    return [Link(a=f"GPU{a}", b=f"GPU{b}", kind=kind(a, b)) for a in range(8) for b in range(a + 1, 8)]


def bridge(address: str, **changes) -> PciDevice:
    """A port of a switch above GPUs, with ACS that redirects nothing."""
    fields = {"kind": "switch_downstream", "vendor": "0x1000", "device": "0x0000", "pcie": GENERATION_5}
    fields |= {"acs": Acs(capable=["SrcValid", "ReqRedir"], enabled=[]), "aer": Aer(correctable=0, nonfatal=0, fatal=0)}
    return PciDevice(address=address, **fields | changes)


def pci_devices(**changes_of_bridges) -> list[PciDevice]:
    """Each GPU below a switch port of its own."""
    devices = []
    for bus in BUSES:
        port = f"0000:{bus}:1f.0"
        devices.append(bridge(port, **changes_of_bridges))
        devices.append(PciDevice(address=f"0000:{bus}:00.0", parent=port, kind="gpu", vendor="0x10de", device="0x2bb5"))
    return devices


def machine(**changes) -> MachineReport:
    """The healthy machine, changed as told."""
    fields = {
        "hostname": "reference",
        "kernel": "6.17.0-20-generic",
        "cpu_model": "AMD EPYC 9575F 64-Core Processor",
        "cpus_allowed": "0-255",
        "memory_nodes_allowed": "0-1",
        "memory_mib": 1547706,
        "memory_available_mib": 1541179,
        "driver": "595.58.03",
        "gpus": [gpu(index) for index in range(8)],
        "gpus_without_driver": [],
        "numa_nodes": [
            NumaNode(id=node, cpus=NODE_CPUS[node], memory_mib=773676, free_mib=770559, gpus=list(range(4 * node, 4)))
            for node in (0, 1)
        ],
        "links": links(),
        "nics": [Nic(name="NIC0", device="mlx5_0", state="4: ACTIVE")],
        "processor": Processor(
            model="AMD EPYC 9575F 64-Core Processor",
            family=26,
            sockets=2,
            cpus=256,
            online="0-255",
            governor="performance",
        ),
        "kernel_settings": KernelSettings(
            cmdline="root=/dev/sda1 iommu=pt pcie_aspm=off pcie_port_pm=off",
            numa_balancing=False,
            modules=[
                KernelModule(name="nvidia", version="595.58.03"),
                KernelModule(name="nvidia_uvm", version="595.58.03", parameters={"uvm_disable_hmm": "Y"}),
            ],
            nvidia_parameters={"RegistryDwords": '"ForceP2P=0x11"'},
        ),
        "pci_devices": pci_devices(),
        "iommu": Iommu(enabled=True, groups=[IommuGroup(id=1, type="identity", devices=["0000:06:00.0"])]),
        "file_systems": [FileSystem(path="/models", purpose="models", mount_point="/models", type="xfs")],
        "listeners": [],
        "services": [Service(name="nvidia-persistenced.service", active="active", sub="running")],
        "software": Software(
            driver="595.58.03",
            driver_cuda="13.2",
            cuda_toolkit="13.0",
            torch_cuda="13.0",
            docker="29.0.0",
            packages={"torch": "2.14.1+cu130", "nvidia-nccl-cu13": "2.28.9"},
        ),
        "engines": [],
        "models": [ModelFolder(path=MODEL_PATH, complete=True, weight_files=1)],
        "environment": {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
        "named_files": {},
    }
    return MachineReport(**fields | changes)


OPTIONS = ["--attention-backend", "--chat-template", "--context-length"]
OPTIONS += ["--cuda-graph-max-bs-decode", "--cuda-graph-max-bs-prefill"]
OPTIONS += ["--disaggregation-decode-enable-radix-cache", "--disaggregation-transfer-backend", "--dp-size", "--ep-size"]
OPTIONS += ["--enable-dp-attention", "--enable-two-batch-overlap", "--kv-cache-dtype", "--max-running-requests"]
OPTIONS += ["--mem-fraction-static", "--numa-node", "--page-size", "--speculative-algorithm", "--speculative-num-steps"]
OPTIONS += ["--speculative-num-draft-tokens"]


def engine(**changes) -> EngineReport:
    """SGLang 0.5.23 with its own pins, on sm_120."""
    pins = {"torch": "2.14.1", "flashinfer_python": "0.7.2", "sglang-kernel": "0.4.10", "sgl-deep-gemm": "0.2.3.post2"}
    fields = {
        "version": "0.5.23",
        "python": "3.12.3",
        "packages": {"torch": "2.14.1", "nixl": "1.5.1", "nixl-cu13": "1.5.1", "sglang-kernel": "0.4.10"},
        "arch": "sm_120",
        "family": "deepseek_v4",
        "pins": [Pin(package=name, wanted=f"=={v}", installed=v, state="met") for name, v in pins.items()],
        "steps": [KernelStep(step="experts", kernel="FlashInfer CUTLASS MXFP8xMXFP4", compiled_by="FlashInfer")],
        "limits": [
            KernelLimit(name="sparse decode: tokens a call", values=[64]),
            KernelLimit(name="sparse decode: heads a rank at most", values=[128]),
            KernelLimit(name="sparse decode: heads a rank with an instance of their own", values=[8, 16, 32, 64, 128]),
        ],
        "binaries": [],
        "tools": [
            Tool(name="nvcc", path="/cuda/bin/nvcc", version="13.0", architectures=["sm_120"]),
            Tool(name="ninja", path="/bin/ninja", version="1.13"),
            Tool(name="c++", path="/bin/c++", version="14.2"),
        ],
        "transfer_backends": [TransferBackend(name="UCX", loads=True)],
        "transport_modules": [TransportModule(name="cuda", loads=True)],
        "options": [ServerOption(flag=flag, default=None) for flag in OPTIONS],
        "tuned_devices": {NAME: 2},
    }
    return EngineReport(**fields | changes)


def model(**changes) -> ModelReport:
    """DeepSeek-V4-Flash."""
    fields = {
        "path": MODEL_PATH,
        "architecture": "DeepseekV4ForCausalLM",
        "parameters": 290_905_653_248,
        "weight_bytes": 159_478_448_128,
        "layers": 43,
        "heads": 64,
        "context_length": 1_048_576,
        "chat_template": True,
        "attention": Attention(
            kind="V4-compressed",
            layers={"sliding": 2, "compressed 4x": 21, "compressed 128x": 20},
            sliding_window=128,
            index_topk=512,
        ),
        "kv_cache": KvCache(declared_dtype=None, bytes_per_token={"fp8": 3850.25}, formula="", replicated=True),
        "experts": Experts(routed=256, top_k=6, shared=1, width=2048, moe_layers=43, dense_layers=0),
        "mtp": Mtp(count=1, basis="compress_ratios", declared=1),
        "ranks": [RankBytes(tp=4, ep=1, bytes=40_793_276_416), RankBytes(tp=1, ep=1, bytes=159_478_448_128)],
        "files": [ModelFile(name="model-00001-of-00001.safetensors", size=159_478_448_128)],
        "integrity": Integrity(files=1, bytes=159_478_448_128),
    }
    return ModelReport(**fields | changes)


ENVIRONMENT = {
    "SGLANG_AUTO_NUMA_BIND": "0",
    "SGLANG_JIT_CACHE_DIR": "/var/cache/sglang/abc",
    "NCCL_MIN_NCHANNELS": "8",
    "UCX_NET_DEVICES": "mlx5_0:1",
}
TRANSFER = ["--disaggregation-transfer-backend", "nixl"]


def worker(role: str, **changes) -> Worker:
    """Prefill on the GPUs of node 0, or decode on those of node 1."""
    node = 0 if role == "prefill" else 1
    fields = {
        "name": role,
        "role": role,
        "gpus": list(range(4 * node, 4 * node + 4)),
        "numa_node": node,
        "tp_size": 4,
        "port": 30010 + node,
        "bootstrap_port": 30020 + node,
        "nccl_port": 30030 + node,
        "args": TRANSFER,
        "env": ENVIRONMENT,
    }
    return Worker(**fields | changes)


def plan(prefill: dict | None = None, decode: dict | None = None, **changes) -> Plan:
    """Prefill and decode, each changed as told."""
    fields = {
        "topology": "pd",
        "model": PlannedModel(path=MODEL_PATH, served_name="deepseek-v4-flash"),
        "engine": PlannedEngine(version="0.5.23", device="cuda"),
        "workers": [worker("prefill", **prefill or {}), worker("decode", **decode or {})],
        "router": Router(port=30000, metrics_port=30001),
    }
    return Plan(**fields | changes)


def both(*words: str, env: dict[str, str] | None = None, **changes) -> Plan:
    """The plan with more arguments and variables for both workers."""
    more = {"env": ENVIRONMENT | (env or {})} | changes
    return plan(more | {"args": [*TRANSFER, *words]}, more | {"args": [*TRANSFER, *words]})


def facts(**changes) -> Facts:
    """All of it, changed as told: machine=machine(driver=...)."""
    return Facts(**{"machine": machine(), "engine": engine(), "model": model(), "plan": plan()} | changes)


def with_gpu(index: int, **changes) -> Facts:
    """All of it, with one GPU changed."""
    return facts(machine=machine(gpus=[gpu(i, **changes) if i == index else gpu(i) for i in range(8)]))


def with_environment(**variables: str) -> Facts:
    """All of it, with variables in the environment that workers inherit."""
    return facts(machine=machine(environment=variables))
