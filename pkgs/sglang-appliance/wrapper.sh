#!@bash@/bin/bash
# What is set already wins.
set -eu

default() { # NAME VALUE
    [ -n "${!1:-}" ] || export "$1=$2"
}

export PATH=@engine@/bin:@tools@${PATH:+:$PATH}
default CUDA_HOME @cudaHome@
default CC @compiler@/bin/gcc
default CXX @compiler@/bin/g++
default NVCC_CCBIN @compiler@/bin
# where NixOS has the driver's libraries: for the linker, and for Triton, which would ask ldconfig
default TRITON_LIBCUDA_PATH /run/opengl-driver/lib
export LIBRARY_PATH=/run/opengl-driver/lib${LIBRARY_PATH:+:$LIBRARY_PATH}

cache=${APPLIANCE_JIT_CACHE_DIR:-${CACHE_DIRECTORY:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/appliance}/jit}/@key@
default SGLANG_CACHE_DIR "$cache/sglang"
default SGLANG_JIT_CACHE_DIR "$cache/sglang/jit"
default SGLANG_DG_CACHE_DIR "$cache/deep_gemm"
default DG_JIT_CACHE_DIR "$cache/deep_gemm"
default FLASHINFER_WORKSPACE_BASE "$cache/flashinfer"
default FLASH_ATTENTION_CUTE_DSL_CACHE_DIR "$cache/flash_attention"
default CUDA_TILE_CACHE_DIR "$cache/cuda_tile"
default CUDA_CACHE_PATH "$cache/cuda"
default HUMMING_CACHE_DIR "$cache/humming"
default QUACK_CACHE_DIR "$cache/quack"
default TILELANG_CACHE_DIR "$cache/tilelang"
default TORCHINDUCTOR_CACHE_DIR "$cache/inductor"
default TORCH_EXTENSIONS_DIR "$cache/torch_extensions"
default TRITON_CACHE_DIR "$cache/triton"
default TVM_FFI_CACHE_DIR "$cache/tvm_ffi"

exec @engine@/bin/@command@ "$@"
