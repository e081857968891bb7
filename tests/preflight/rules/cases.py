"""What makes each rule fire: the healthy facts with one thing changed, and words of the evidence that must come."""

from appliance.documents import PlannedEngine, Tool, TransferBackend, TransportModule
from appliance.documents.engine import Binary, KernelStep, Pin
from appliance.documents.machine import (
    Acs,
    Aer,
    FileSystem,
    GpuProcess,
    Iommu,
    IommuGroup,
    KernelModule,
    Listener,
    ModelFolder,
    Nic,
    NumaNode,
    PcieLink,
    Processor,
    RunningEngine,
    Service,
)
from appliance.documents.model import Attention, ClaimPart, Integrity, Mtp, Problem, RankBytes, TensorCoreUse
from appliance.preflight.facts import Facts
from tests.helpers.healthy import (
    MODEL_PATH,
    NAME,
    both,
    engine,
    facts,
    gpu,
    links,
    machine,
    model,
    pci_devices,
    plan,
    with_environment,
    with_gpu,
)

WINDOWS = Attention(kind="GQA", layers={"full": 20, "sliding": 20}, sliding_window=1024)
TRANSLATED = Iommu(enabled=True, groups=[IommuGroup(id=1, type="DMA-FQ", devices=["0000:06:00.0"])])
REDIRECTED = pci_devices(acs=Acs(capable=["ReqRedir"], enabled=["ReqRedir", "CmpltRedir"]))
GRAPH_MISSING = {"/etc/graph.xml": False}
NO_TILELANG = KernelStep(step="experts", kernel="a kernel", lacking=["tilelang is not installed"])
FA3 = Binary(
    package="sglang-kernel", file="flash_ops.abi3.so", sha256="0", machine_code=["sm_90a"], ptx=[], serves=False
)
TWO_MISSING = ModelFolder(path=MODEL_PATH, complete=False, problems=["2 of 74 shards missing"])
STALE = RunningEngine(name="sglang", pid=7, port=30010, version="0.5.17", identity={"context_length": 409600})
PHB = [link.model_copy(update={"kind": "PHB" if link.kind == "NODE" else link.kind}) for link in links()]


def settings(**changes) -> Facts:
    """The healthy facts with other settings of the kernel."""
    return facts(machine=machine(kernel_settings=machine().kernel_settings.model_copy(update=changes)))


def software(**changes) -> Facts:
    """The healthy facts with other versions on the machine, and no engine's report."""
    return facts(machine=machine(software=machine().software.model_copy(update=changes)), engine=None)


def nvlinked(odd: str) -> Facts:
    """Eight GPUs all joined by NVLink, one pair unlike the others."""
    joined = [
        link.model_copy(update={"kind": odd if (link.a, link.b) == ("GPU2", "GPU3") else "NV18"}) for link in links()
    ]
    return facts(machine=machine(links=joined))


def fabric(**changes) -> Facts:
    """A machine of eight GPUs behind NVSwitch."""
    joined = [link.model_copy(update={"kind": "NV18"}) for link in links()]
    return facts(machine=machine(links=joined, **changes))


CASES: dict[str, tuple[Facts, str]] = {
    # host
    "numa-balancing-on": (settings(numa_balancing=True), "kernel.numa_balancing is on, with 2 NUMA nodes"),
    "cpu-governor": (
        facts(machine=machine(processor=Processor(governor="powersave", family=26, model="EPYC", online="0-255"))),
        "powersave",
    ),
    "cpus-offline": (
        facts(machine=machine(processor=Processor(online="0-238,240-255", offline="239", cpus=256))),
        "CPU 239 of 256",
    ),
    "copy-on-write-file-system": (
        facts(machine=machine(file_systems=[FileSystem(path="/models", purpose="models", type="zfs")])),
        "/models (models) is on zfs",
    ),
    "model-on-network": (
        facts(machine=machine(file_systems=[FileSystem(path="/models", purpose="models", type="nfs4")])),
        "nfs4",
    ),
    "memory-only-nodes": (
        facts(machine=machine(numa_nodes=[*machine().numa_nodes, NumaNode(id=2, cpus="")])),
        "1 of 3 nodes have no CPU",
    ),
    "gpu-node-unknown": (with_gpu(3, numa_node=None), "GPU 3: no NUMA node, on a machine of 2"),
    "affinity-is-not-the-nodes": (with_gpu(0, cpu_affinity="57-63,161-166"), "GPU 0: CPUs 57-63,161-166"),
    "guest-without-topology": (
        facts(
            machine=machine(
                processor=Processor(hypervisor="KVM", cpus=368, online="0-367"),
                gpus=[gpu(index, numa_node=0) for index in range(8)],
            )
        ),
        "8 GPUs on node 0, in a guest of KVM",
    ),
    # pcie and peers
    "iommu-translates": (facts(machine=machine(iommu=TRANSLATED)), "0000:06:00.0"),
    "iommu-with-acs": (
        facts(machine=machine(iommu=TRANSLATED, pci_devices=REDIRECTED)),
        "redirected at 0000:06:1f.0 (switch downstream)",
    ),
    "acs-redirects-peers": (facts(machine=machine(pci_devices=REDIRECTED)), "CmpltRedir+ ReqRedir+"),
    "pcie-link-narrow": (with_gpu(5, pcie=PcieLink(gen=5, width=8, max_gen=5, max_width=16)), "x8 of x16"),
    "pcie-errors": (
        facts(machine=machine(pci_devices=pci_devices(aer=Aer(correctable=3, nonfatal=2, fatal=1)))),
        "1 fatal, 2 nonfatal",
    ),
    "pcie-power-saving": (settings(cmdline="root=/dev/sda1 iommu=pt pcie_aspm=off"), "without pcie_port_pm=off"),
    "bar1-small": (with_gpu(2, bar1_mib=256), "GPU 2: BAR1 256 MiB, memory 97887 MiB"),
    "peer-mailbox": (settings(nvidia_parameters={}), "8 pairs without a switch between them"),
    "nvlink-uneven": (nvlinked("NV17"), "NV17 for GPU pairs 2-3, NV18 elsewhere"),
    # gpus and driver
    "gpu-hidden": (facts(machine=machine(gpus_without_driver=["0000:b5:00.0"])), "0000:b5:00.0"),
    "gpu-count-odd": (facts(machine=machine(gpus=[gpu(index) for index in range(7)])), "7 GPUs"),
    "gpus-unlike": (with_gpu(7, name="NVIDIA GeForce RTX 4090"), "2 kinds"),
    "gpu-hot": (with_gpu(1, temperature_c=91, throttle_reasons=["HW Thermal Slowdown"]), "91 C"),
    "gpu-power-capped": (with_gpu(0, power_limit_w=300.0), "300 W of 600 W"),
    "gpu-in-use": (
        with_gpu(4, memory_used_mib=81920, processes=[GpuProcess(pid=9, name="python", memory_mib=81000)]),
        "GPU 4: 81920 MiB used by python (pid 9)",
    ),
    "gpu-partitioned": (with_gpu(0, mig_enabled=True), "GPU 0: MIG is enabled"),
    "compute-capability-mixed": (with_gpu(1, compute_capability="8.9"), "worker prefill: sm_89, sm_120"),
    "driver-denied": (facts(machine=machine(driver="580.126.20")), "#1111"),
    "driver-too-old": (facts(machine=machine(driver="550.144.03")), "driver 550.144.03"),
    "driver-of-windows": (facts(machine=machine(kernel="5.15.167.4-microsoft-standard-WSL2")), "WSL2"),
    "uvm-not-loaded": (settings(modules=[KernelModule(name="nvidia")]), "loaded: nvidia"),
    "uvm-hmm-on": (
        settings(modules=[KernelModule(name="nvidia_uvm", parameters={"uvm_disable_hmm": "N"})]),
        "uvm_disable_hmm=N",
    ),
    "fabric-manager": (
        fabric(services=[Service(name="nvidia-fabricmanager.service", active="failed", sub="failed")]),
        "is failed (failed)",
    ),
    # collectives
    "rank-map-splits-switch": (facts(plan=plan(decode={"gpus": [4, 6, 5, 7]})), "one switch writes 0->4 and 1->6"),
    "posted-write-collapse": (facts(machine=machine(pci_devices=pci_devices(device="0xc030"))), "0xc030"),
    "one-shot-across-roots": (
        facts(machine=machine(links=PHB), plan=both(env={"SGLANG_ENABLE_PCIE_IPC_ALLREDUCE": "1"})),
        "=1 over PHB links",
    ),
    "worker-spans-sockets": (
        facts(plan=plan({"gpus": [0, 1, 4, 5]}, {"gpus": [2, 3, 6, 7]})),
        "GPU 0, 1, 4, 5 on nodes 0, 1",
    ),
    "nccl-on-turin": (facts(plan=plan({"gpus": [0, 1, 4, 5]}, {"gpus": [2, 3, 6, 7]})), "across sockets"),
    "nccl-few-channels": (facts(plan=plan({"env": {}})), "worker prefill: 4 GPUs on PCIe"),
    "nccl-file-missing": (
        facts(
            machine=machine(environment={"NCCL_GRAPH_FILE": "/etc/graph.xml"}, named_files={"/etc/graph.xml": False})
        ),
        "NCCL_GRAPH_FILE=/etc/graph.xml: no such file",
    ),
    "nccl-older-than-gpu": (software(packages={"nvidia-nccl-cu12": "2.26.2"}), "nvidia-nccl-cu12 2.26.2 with 8"),
    "peer-level-hides-links": (with_environment(NCCL_P2P_DISABLE="1"), "NCCL_P2P_DISABLE=1"),
    # numa
    "worker-far-from-gpus": (facts(plan=plan({"numa_node": 1})), "worker prefill: node 1, its GPUs on 0"),
    "worker-unbound": (facts(plan=plan({"numa_node": None})), "worker prefill: its GPUs are on node 0"),
    "worker-node-missing": (facts(plan=plan({"numa_node": 2})), "node 2 is none of 0, 1"),
    "cpuset-excludes-node": (facts(machine=machine(cpus_allowed="0-63,128-191")), "worker decode, node 1"),
    "memory-node-forbidden": (facts(machine=machine(memory_nodes_allowed="0")), "worker decode: node 1"),
    "two-owners-of-binding": (facts(plan=both("--numa-node", "0")), "node 0 and --numa-node 0"),
    # prefill and decode
    "roles-unlike": (facts(plan=plan(decode={"args": ["--page-size", "64"]})), "--page-size: default of prefill, 64"),
    "roles-unequal-tp": (
        facts(plan=plan(decode={"gpus": [4, 5], "tp_size": 2}), model=model(attention=WINDOWS)),
        "TP 4 of prefill, TP 2 of decode",
    ),
    "roles-speculate-unlike": (
        facts(plan=plan({"args": ["--speculative-algorithm", "EAGLE"]})),
        "prefill: EAGLE; decode: none",
    ),
    "transfer-backend-unset": (facts(plan=plan({"args": []})), "worker prefill: unset, which is mooncake"),
    "bootstrap-port-unset": (facts(plan=plan({"bootstrap_port": None})), "worker prefill"),
    "nccl-port-unset": (facts(plan=plan(decode={"nccl_port": None})), "worker decode"),
    "decode-radix-cache-refused": (
        facts(plan=both("--disaggregation-decode-enable-radix-cache")),
        "worker decode",
    ),
    "decode-radix-cache-off": (
        facts(plan=plan(decode={"args": []}), model=model(attention=Attention(kind="GQA", layers={"full": 80}))),
        "worker decode",
    ),
    "ucx-device-open": (
        facts(machine=machine(nics=[Nic(name="NIC0", device="mlx5_0", state="1: DOWN")])),
        "UCX_NET_DEVICES names mlx5_0, which is down",
    ),
    "expandable-segments": (
        facts(plan=both(env={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})),
        "worker prefill: PYTORCH_CUDA_ALLOC_CONF",
    ),
    "nixl-backend-missing": (
        facts(engine=engine(transfer_backends=[TransferBackend(name="UCX", loads=False, reason="NOT_FOUND")])),
        "UCX does not load (NOT_FOUND)",
    ),
    "ucx-without-cuda": (
        facts(engine=engine(transport_modules=[TransportModule(name="cuda", loads=False, reason="libcuda.so.1")])),
        "does not load (libcuda.so.1)",
    ),
    "nixl-versions-unlike": (facts(engine=engine(packages={"nixl": "1.5.1"})), "nixl-cu13 not installed"),
    # arguments
    "unknown-flags": (facts(plan=both("--cuda-graph-max-bs", "8")), "--cuda-graph-max-bs; the engine has"),
    "tp-is-not-gpus": (facts(plan=plan({"tp_size": 2})), "TP 2 x PP 1, 4 GPUs"),
    "ep-over-tp": (facts(plan=both("--ep-size", "8")), "EP 8, TP 4"),
    "dp-attention-without-dp": (facts(plan=both("--enable-dp-attention")), "--enable-dp-attention with DP 1"),
    "heads-do-not-divide": (facts(model=model(heads=30)), "30 heads over 4 ranks"),
    "context-beyond-model": (facts(plan=both("--context-length", "2097152")), "2097152, the model's is 1048576"),
    "attention-backend-not-for-gpu": (facts(plan=both("--attention-backend", "fa3")), "--attention-backend fa3"),
    "forbidden-on-gpu": (facts(plan=both("--enable-two-batch-overlap")), "--enable-two-batch-overlap"),
    "heads-without-kernel": (facts(model=model(heads=48)), "12 heads a rank"),
    "custom-chat-template": (facts(plan=both("--chat-template", "mine.jinja")), "--chat-template mine.jinja"),
    "chat-template-missing": (facts(model=model(chat_template=False)), "none in tokenizer_config.json"),
    "device-order-wrong": (with_environment(CUDA_DEVICE_ORDER="0000:06:00.0"), "CUDA_DEVICE_ORDER=0000:06:00.0"),
    # speculation
    "speculation-without-drafts": (
        facts(plan=both("--speculative-algorithm", "NEXTN"), model=model(mtp=Mtp(count=0, basis="tensor names"))),
        "NEXTN; the checkpoint has no MTP layer",
    ),
    "speculation-deep": (
        facts(plan=both("--speculative-algorithm", "EAGLE", "--speculative-num-steps", "5")),
        "5 steps",
    ),
    "speculation-loads-twice": (
        facts(
            plan=both("--speculative-algorithm", "EAGLE").model_copy(
                update={"engine": PlannedEngine(version="0.5.10", device="cuda")}
            )
        ),
        "SGLang 0.5.10",
    ),
    "speculation-over-kernel": (
        facts(
            plan=both(
                *("--speculative-algorithm", "DSPARK", "--speculative-num-draft-tokens", "4"),
                *("--max-running-requests", "32"),
            )
        ),
        "32 requests x 4 drafts, the kernel takes 64 tokens",
    ),
    # kernels and versions
    "torch-without-gpu-code": (software(torch_cuda="12.6"), "torch is built with CUDA 12.6; 12.8 is the first"),
    "step-cannot-run": (
        facts(
            engine=engine(steps=[KernelStep(step="experts", kernel="a kernel", lacking=["tilelang is not installed"])])
        ),
        "experts on sm_120: a kernel: tilelang is not installed",
    ),
    "binary-without-gpu-code": (facts(engine=engine(binaries=[FA3])), "flash_ops.abi3.so has sm_90a"),
    "jit-compiler-old": (
        facts(engine=engine(tools=[Tool(name="nvcc", path="/usr/bin/nvcc", version="12.4")])),
        "/usr/bin/nvcc: CUDA 12.4",
    ),
    "jit-tools-missing": (
        facts(engine=engine(tools=[Tool(name="ninja", path=None, version=None, reason="not on PATH")])),
        "ninja: not on PATH; wanted by FlashInfer",
    ),
    "jit-cache-shared": (facts(plan=plan({"env": {}})), "worker prefill: none of SGLANG_JIT_CACHE_DIR"),
    "tuned-tables-missing": (
        facts(engine=engine(tuned_devices={NAME.replace("Server", "Max-Q Workstation"): 4})),
        "there are some for NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
    ),
    "autotune-at-long-context": (facts(plan=both("--context-length", "262144")), "--context-length 262144"),
    "versions-do-not-belong-together": (
        facts(engine=engine(pins=[Pin(package="torch", wanted="==2.14.1", installed="2.11.0", state="other version")])),
        "torch: 2.11.0; SGLang 0.5.23 wants ==2.14.1",
    ),
    "torch-is-nightly": (
        software(packages={"torch": "2.8.0.dev20250405+cu128", "sgl-kernel": "0.0.8"}),
        "torch 2.8.0.dev20250405+cu128, sgl-kernel 0.0.8",
    ),
    "deepgemm-is-not-the-engines": (software(packages={"deep-gemm": "2.1.0"}), "deep-gemm 2.1.0"),
    "cuda-libraries-shadowed": (
        with_environment(LD_LIBRARY_PATH="/usr/local/cuda/compat:/x"),
        "/usr/local/cuda/compat",
    ),
    "engine-is-another": (facts(engine=engine(version="0.5.17")), "SGLang 0.5.17; the plan is for 0.5.23"),
    "engine-unstamped": (software(packages={"sglang": "0.5.23.dev4+gabc1234.d20261130"}), "d20261130"),
    # memory
    "weights-do-not-fit": (
        facts(model=model(ranks=[RankBytes(tp=4, ep=1, bytes=105_000_000_000)])),
        "100136 MiB of weights a rank, 97887 MiB a GPU",
    ),
    "cache-too-small": (
        facts(
            model=model(ranks=[RankBytes(tp=4, ep=1, bytes=93_000_000_000)]), plan=both("--context-length", "1048576")
        ),
        "3850 MiB a rank for 1048576 tokens",
    ),
    "memory-share-tight": (facts(plan=both("--mem-fraction-static", "0.97")), "--mem-fraction-static 0.97"),
    "host-memory-short": (facts(machine=machine(memory_available_mib=65536)), "65536 MiB available"),
    # checkpoint
    "checkpoint-broken": (
        facts(
            model=model(
                integrity=Integrity(
                    files=1, bytes=9, problems=[Problem(kind="short", file="a.safetensors", words="3 bytes short")]
                )
            )
        ),
        "a.safetensors: 3 bytes short",
    ),
    "planned-model-incomplete": (
        facts(
            machine=machine(models=[ModelFolder(path=MODEL_PATH, complete=False, problems=["2 of 74 shards missing"])])
        ),
        "2 of 74 shards missing",
    ),
    "name-claims-other-weights": (
        facts(model=model(claims=[ClaimPart(claim="nvfp4", verdict="differs", words="experts are mxfp4")])),
        "nvfp4: experts are mxfp4",
    ),
    "no-tensor-core-format": (
        facts(
            model=model(
                tensor_cores=[
                    TensorCoreUse(
                        architecture="sm_120",
                        format="int4",
                        components=["experts"],
                        native=False,
                        words="converted to bf16",
                        source="PTX ISA",
                    )
                ]
            )
        ),
        "int4 on sm_120 (experts): converted to bf16",
    ),
    # operation
    "port-taken": (
        facts(machine=machine(listeners=[Listener(address="127.0.0.1", port=30010, pid=7, process="python")])),
        "port 30010 (prefill.port) is in use on 127.0.0.1 by python (pid 7)",
    ),
    "gpus-not-there": (facts(machine=machine(gpus=[gpu(index) for index in range(6)])), "worker decode: GPU 6, 7"),
    "engine-already-running": (facts(machine=machine(engines=[STALE])), "sglang 0.5.17 (pid 7, port 30010)"),
    "running-server-is-another": (
        facts(machine=machine(engines=[STALE]), plan=both("--context-length", "1048576")),
        "context 409600; planned 1048576",
    ),
    "visible-devices-set": (
        facts(machine=machine(unit_environments={"sglang-decode.service": {"CUDA_VISIBLE_DEVICES": "0"}})),
        "sglang-decode.service: CUDA_VISIBLE_DEVICES=0, GPUs [4, 5, 6, 7] planned",
    ),
    "proxy-in-the-plan": (facts(plan=both(env={"https_proxy": "http://proxy:3128"})), "worker prefill: https_proxy"),
    "containers-lose-gpus": (
        facts(machine=machine(services=[Service(name="docker.service", active="active", sub="running")])),
        "docker 29.0.0 is active",
    ),
}
"""Rules over probes are tested beside the probes."""
