"""Versions of what is installed: system, CUDA, container runtime, the packages beside a Python."""

import re

from appliance.documents.machine import Software
from appliance.recon.machine.findings import Findings
from appliance.recon.machine.probes.kernel_text import pairs
from appliance.recon.machine.source import Source, run_all
from appliance.recon.machine.text.environment_dump import NVCC

TOOLS = ["nvcc", "nvcc_in_usr_local", "fabric_manager", "container_toolkit", "docker", "python", "libc"]
DIST_INFO = re.compile(r"([A-Za-z0-9][\w.]{0,60}?)-(\d[^-]{0,60})\.dist-info")
PACKAGES = re.compile(
    r"torch|torchvision|triton|transformers|sglang|sgl[-_]kernel|sglang[-_]kernel|vllm|flashinfer.*|nixl.*|deep[-_]?gemm|"
    r"flash[-_].*|tilelang|nvidia[-_]nccl.*|nvidia[-_]cudnn.*|nvidia[-_]ml[-_]py|smg|sglang[-_]router|mooncake.*|"
    r"huggingface[-_]hub|safetensors|ray|numpy|cutlass.*|nvidia[-_]cutlass.*"
)


def versions(source: Source) -> Findings:
    """Versions by tool; the driver's are put in later."""
    found = Findings()
    outputs = run_all(source, TOOLS)
    said = {name: output.text or "" for name, output in outputs.items()}
    nvcc = NVCC.search(said["nvcc"] or said["nvcc_in_usr_local"])
    manager = re.search(r"version is\s*:\s*(\S{1,30})", said["fabric_manager"])
    toolkit = re.search(r"version (\d\S{0,30})", said["container_toolkit"])
    docker = re.search(r"version (\d[\w.]{0,30})", said["docker"])
    python = re.search(r"Python (\d\S{0,30})", said["python"])
    system = pairs(source.text("/etc/os-release"), "=").get("PRETTY_NAME")
    software = Software(
        os=system.strip('"') if system else None,
        libc=said["libc"].strip().replace(" ", "-") or None,
        python=python[1] if python else None,
        cuda_toolkit=nvcc[1] if nvcc else None,
        fabric_manager=manager[1] if manager else None,
        container_toolkit=toolkit[1] if toolkit else None,
        docker=docker[1] if docker else None,
    )
    found.add("software", software, "/etc/os-release and each tool's own version", "")
    return found


def packages_beside(source: Source, python: str) -> dict[str, str] | None:
    """The packages that matter in the environment of a Python, by the names of their metadata; None if unknown."""
    prefix = python.rsplit("/bin/", 1)[0] if "/bin/" in python else None
    if prefix is None:
        return None
    found: dict[str, str] = {}
    for lib in source.names(f"{prefix}/lib"):
        if lib.startswith("python3"):
            for folder in ("site-packages", "dist-packages"):
                for name in source.names(f"{prefix}/lib/{lib}/{folder}"):
                    info = DIST_INFO.fullmatch(name)
                    if info and PACKAGES.fullmatch(info[1].lower()):
                        found.setdefault(info[1].lower().replace("_", "-"), info[2])
    return found or None
