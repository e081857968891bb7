from appliance.recon.machine.text import environment_dump


def test_the_build_of_torch_is_taken_from_its_own_line():
    dump = environment_dump.parse(
        "PyTorch version: 2.9.1+cu129\n[pip3] torch==2.9.1\n[conda] triton   3.5.1   pypi_0\n"
    )
    assert dump.packages == {"torch": "2.9.1+cu129", "triton": "3.5.1"}


def test_sections_with_padded_keys():
    dump = environment_dump.parse(
        "CUDA used to build PyTorch   : 12.9\nCUDA runtime version         : Could not collect\n"
        "Nvidia driver version        : 580.95.05\nvLLM Version                 : 0.16.0 (git sha: 0123456)\n"
    )
    assert dump.facts == {"torch_cuda": "12.9", "driver": "580.95.05"}
    assert dump.packages == {"vllm": "0.16.0"}


def test_check_env_with_modules_that_are_not_there():
    dump = environment_dump.parse(
        "Python: 3.12.3 (main)\nGPU 0,1 Compute Capability: 12.0\n"
        "NVCC: Cuda compilation tools, release 12.9, V12.9.41\n"
        "PyTorch: 2.9.1+cu130\nsglang: 0.5.23\nflashinfer_python: Module Not Found\nvllm: Module Not Found\n"
    )
    assert dump.packages == {"torch": "2.9.1+cu130", "sglang": "0.5.23"}
    assert dump.facts == {"python": "3.12.3", "cuda_toolkit": "12.9"}
    assert dump.gpus == {0: {"compute_capability": "12.0"}, 1: {"compute_capability": "12.0"}}


def test_variables_without_secrets():
    dump = environment_dump.parse(
        "NCCL_PROTO=LL\nHF_TOKEN=hf_x\nVLLM_API_KEY=sk\nCUDA_DEVICE_ORDER=PCI_BUS_ID\nEDITOR=vi\n"
    )
    assert dump.environment == {"NCCL_PROTO": "LL", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def test_shell_sessions():
    found = environment_dump.parse_sessions(
        "someone@box:~$ uname -r\n6.8.0-138-generic\n$ cat /proc/cmdline\nBOOT_IMAGE=/vmlinuz ro iommu=pt\n"
        "# modinfo nvidia | grep version\nversion:        580.95.05\nDocker version 28.2.2, build 1\n"
        "NVIDIA Container Toolkit CLI version 1.18.0\n"
    )
    assert found == {
        "kernel": "6.8.0-138-generic",
        "cmdline": "BOOT_IMAGE=/vmlinuz ro iommu=pt",
        "driver": "580.95.05",
        "docker": "28.2.2",
        "container_toolkit": "1.18.0",
    }
