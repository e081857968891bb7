"""What the built packages do. The stand-in for nixpkgs gives the loader and libstdc++ store paths, as NixOS does."""

import pytest

from tests.helpers.nix_packages import build, in_nix_environment, output

pytestmark = pytest.mark.usefixtures("wheels")

CUDA_SOURCE = "__global__ void twice(float *x) { x[threadIdx.x] *= 2; }"


@pytest.fixture(scope="module")
def appliance_environment() -> str:
    return build("appliance-environment")


@pytest.fixture(scope="module")
def host_package() -> str:
    """bin/ as on a host, with the small environment for the engine's."""
    return build("small-sglang-appliance")


def test_every_package_of_an_environment_imports():
    report = output("cat", build("small-import-check"))
    assert "pydantic_core 2" in report and "appliance 0" in report
    assert "not imported" not in report


def test_wheels_with_machine_code_run(appliance_environment):
    code = "import psutil, pydantic_core, hf_xet, yaml; print(psutil.cpu_count() > 0)"
    assert output(f"{appliance_environment}/bin/python", "-c", code) == "True\n"


def test_libraries_come_from_the_store(appliance_environment):
    library = output("bash", "-c", f"echo {appliance_environment}/lib/python3.12/site-packages/hf_xet/*.so").strip()
    lines = output("ldd", library).splitlines()
    assert any("libgcc_s.so.1 => /nix/store/" in line for line in lines)


def test_console_scripts_run(appliance_environment):
    assert output(f"{appliance_environment}/bin/appliance", "--version") == "appliance, version 0.1.0\n"
    assert "version" in output(f"{appliance_environment}/bin/hf", "version")


def test_the_environment_sees_nothing_of_the_machines_python(appliance_environment):
    code = "import sys; print([p for p in sys.path if p and not p.startswith('/nix/store/')])"
    assert output("env", "-u", "PYTHONPATH", f"{appliance_environment}/bin/python", "-c", code) == "[]\n"


def test_kernels_hold_machine_code_for_both_gpus_and_load_without_one():
    library = build("kernels") + "/lib/python3.12/site-packages/appliance_kernels/libappliance_kernels.so"
    listed = output(build("cuda-compiler") + "/bin/cuobjdump", "--list-elf", library)
    assert "sm_120a" in listed and "sm_90a" in listed
    code = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).appliance_kernels_abi_version())"
    assert output("python3", "-c", code, library) == "1\n"


def test_what_is_compiled_at_run_time_finds_compiler_and_headers(host_package, tmp_path):
    (tmp_path / "twice.cu").write_text(f"#include <cuda_fp16.h>\n#include <cuda/std/array>\n{CUDA_SOURCE}")
    nvcc = "$CUDA_HOME/bin/nvcc -arch=sm_120a -shared -Xcompiler -fPIC twice.cu -o twice.so"
    code = f"import os; os.execvp('bash', ['bash', '-c', 'cd {tmp_path} && {nvcc} && which ninja'])"
    done = in_nix_environment(f"{host_package}/bin/python", "-c", code)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "twice.so").exists()


def test_cuda_headers_agree_with_glibc_2_42(tmp_path):
    (tmp_path / "as_glibc_does.cu").write_text(
        """
        #include <cuda_runtime.h>
        extern "C" double rsqrt(double) noexcept(true);
        extern "C" float rsqrtf(float) noexcept(true);
        """
    )
    nvcc = build("cuda-compiler") + "/bin/nvcc"
    output(nvcc, "-std=c++17", "-c", tmp_path / "as_glibc_does.cu", "-o", tmp_path / "object")


def test_caches_are_keyed_by_the_closure_and_what_is_set_wins(host_package):
    code = "import os; print(os.environ['SGLANG_JIT_CACHE_DIR'], os.environ['TRITON_CACHE_DIR'])"
    set_ = ["env", "CACHE_DIRECTORY=/var/cache/x", "TRITON_CACHE_DIR=/mine"]
    sglang, triton = output(*set_, f"{host_package}/bin/python", "-c", code).split()
    key = host_package.removeprefix("/nix/store/").partition("-")[0]
    assert sglang == f"/var/cache/x/jit/{key}/sglang/jit"
    assert triton == "/mine"
