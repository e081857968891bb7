#!@bash@/bin/bash
# What is set already wins.
set -eu
export PATH=@engine@/bin:@tools@${PATH:+:$PATH}
export CUDA_HOME=${CUDA_HOME:-@cudaHome@} CC=${CC:-@compiler@/bin/gcc} CXX=${CXX:-@compiler@/bin/g++}
export NVCC_CCBIN=${NVCC_CCBIN:-@compiler@/bin} TRITON_LIBCUDA_PATH=${TRITON_LIBCUDA_PATH:-/run/opengl-driver/lib}
export LIBRARY_PATH=/run/opengl-driver/lib${LIBRARY_PATH:+:$LIBRARY_PATH}

cache=${APPLIANCE_JIT_CACHE_DIR:-${CACHE_DIRECTORY:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/appliance}/jit}/@key@
export SGLANG_JIT_CACHE_DIR=${SGLANG_JIT_CACHE_DIR:-$cache/sglang}
export FLASHINFER_WORKSPACE_BASE=${FLASHINFER_WORKSPACE_BASE:-$cache/flashinfer}
export SGLANG_DG_CACHE_DIR=${SGLANG_DG_CACHE_DIR:-$cache/deep_gemm} DG_JIT_CACHE_DIR=${DG_JIT_CACHE_DIR:-$cache/deep_gemm}
export TILELANG_CACHE_DIR=${TILELANG_CACHE_DIR:-$cache/tilelang}
export TRITON_CACHE_DIR=${TRITON_CACHE_DIR:-$cache/triton} TORCHINDUCTOR_CACHE_DIR=${TORCHINDUCTOR_CACHE_DIR:-$cache/inductor}
export TORCH_EXTENSIONS_DIR=${TORCH_EXTENSIONS_DIR:-$cache/torch_extensions} CUDA_CACHE_PATH=${CUDA_CACHE_PATH:-$cache/cuda}

exec @engine@/bin/@command@ "$@"
