"""collect_env of PyTorch and vLLM, check_env of SGLang, and the versions in shell sessions around them."""

import re
from dataclasses import dataclass, field

from appliance.recon.machine.text.found_gpu import Facts
from appliance.recon.machine.text.values import known

PAIR = re.compile(r"\s{0,4}([A-Za-z][^:=\n]{0,50}?)\s*:(?:\s+(.*))?$")
PIP = re.compile(r"\[(?:pip3?|conda|uv)\]\s+([A-Za-z0-9][\w.-]{0,60}?)(?:==|\s+)(\d\S{0,60})")
VARIABLE = re.compile(
    r"((?:CUDA|NCCL|NVIDIA|UCX|NIXL|SGLANG|SGL|VLLM|TORCH|PYTORCH|TORCHINDUCTOR|TRITON|HF|OMP|MKL|GLOO|FLASHINFER|"
    r"RAY|LD_LIBRARY|MC)[A-Z0-9_]{0,60})=(.{0,4096})$"
)
SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|_KEY$|APIKEY|CREDENTIAL")
CAPABILITY = re.compile(r"GPU (\d{1,4}(?:,\d{1,4}){0,255}) Compute Capability:\s*(\d{1,2}\.\d)")
NVCC = re.compile(r"release (\d{1,3}\.\d{1,3})(?:, V(\d[\d.]*))?")
NAMES = {
    "sglang": "sglang",
    "sgl_kernel": "sgl-kernel",
    "flashinfer": "flashinfer-python",
    "flashinfer_python": "flashinfer-python",
    "flashinfer_cubin": "flashinfer-cubin",
    "triton": "triton",
    "transformers": "transformers",
    "torchao": "torchao",
    "vllm": "vllm",
    "xgrammar": "xgrammar",
    "huggingface_hub": "huggingface-hub",
    "outlines": "outlines",
    "pydantic": "pydantic",
    "fastapi": "fastapi",
    "uvicorn": "uvicorn",
    "numpy": "numpy",
}
KEYS = {
    "Nvidia driver version": "driver",
    "CUDA Driver Version": "driver",
    "CUDA runtime version": "cuda_toolkit",
    "CUDA used to build PyTorch": "torch_cuda",
    "OS": "os",
    "Libc version": "libc",
    "Python version": "python",
    "Python": "python",
    "Hypervisor vendor": "hypervisor",
    "Python platform": "platform",
}


@dataclass
class Dump:
    """Facts by name ("driver", "cuda_toolkit", "torch_cuda", "os", ...), packages and variables of a dump."""

    facts: dict[str, str] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    gpus: dict[int, Facts] = field(default_factory=dict)


def parse(text: str) -> Dump:
    """Read every line of cleaned `text` that such a dump could hold; the first value of each key counts."""
    dump = Dump()
    for line in text.split("\n"):
        pip = PIP.match(line)
        variable = VARIABLE.match(line)
        capability = CAPABILITY.match(line)
        if pip:
            dump.packages.setdefault(pip[1].lower().replace("_", "-"), pip[2])
        elif variable:
            if not SECRET.search(variable[1]):
                dump.environment.setdefault(variable[1], variable[2].strip())
        elif capability:
            for index in capability[1].split(","):
                dump.gpus[int(index)] = {"compute_capability": capability[2]}
        else:
            read_pair(dump, line)
    return dump


def read_pair(dump: Dump, line: str) -> None:
    """Take one `key: value` line, and the tools that print sentences."""
    pair = PAIR.match(line)
    if not pair:
        return
    key, value = pair[1].strip(), known(pair[2])
    if value is None or value == "Module Not Found":
        return
    if key in KEYS:
        words = value.split()
        short = {"driver": words[0], "python": words[0], "cuda_toolkit": words[0], "torch_cuda": words[0]}
        dump.facts.setdefault(KEYS[key], short.get(KEYS[key], value))
    elif key in ("PyTorch version", "PyTorch"):
        dump.packages["torch"] = value.split()[0]  # knows the build (+cu128), which pip's list leaves out
    elif key in ("vLLM Version", "SGLang Version"):
        dump.packages[key.split()[0].lower()] = value.split()[0]
    elif key == "NVCC" or key == "Cuda compilation tools":
        release = NVCC.search(value)
        if release:
            dump.facts.setdefault("cuda_toolkit", release[1])
    elif key in NAMES and value[0].isdigit():
        dump.packages.setdefault(NAMES[key], value.split()[0])
    elif key == "Fabric Manager version is":
        dump.facts.setdefault("fabric_manager", value.split()[0])
    elif key == "Description" and re.match(r"[A-Z]", value):
        dump.facts.setdefault("os", value)


def parse_sessions(text: str) -> dict[str, str]:
    """Versions in shell sessions, by Software field or "driver", "kernel": modinfo, nvcc, uname, docker."""
    found: dict[str, str] = {}
    command = ""
    for line in text.split("\n"):
        prompt = re.match(r"\s{0,4}(?:\S{1,40}@\S{1,80}?[$#]|[$#])\s+(.*)$", line)
        if prompt:
            command = prompt[1].strip()
            continue
        tool = re.match(r"NVIDIA Container Toolkit CLI version (\S{1,30})", line)
        docker = re.match(r"Docker version (\d[\w.]{0,30})", line)
        nvcc = NVCC.search(line) if "Cuda compilation tools" in line else None
        if tool:
            found.setdefault("container_toolkit", tool[1])
        elif docker:
            found.setdefault("docker", docker[1])
        elif nvcc:
            found.setdefault("cuda_toolkit", nvcc[1])
        elif command.startswith("modinfo nvidia") and re.match(r"version:\s+\d", line):
            found.setdefault("driver", line.split()[1])
        elif command == "uname -r" and re.fullmatch(r"\d+\.\d+\S{0,60}", line.strip()):
            found.setdefault("kernel", line.strip())
        elif command.endswith("/proc/cmdline") and ("=" in line or " ro" in line):
            found.setdefault("cmdline", line.strip())
            command = ""
    return found
