#!/bin/sh
# Builds libappliance_kernels.so: the same bits from any directory. usage: build.sh OUTPUT_DIRECTORY
# nvcc comes from CUDA_HOME or the PATH; no GPU is needed. ARCHS chooses GPUs (sm_90a: H200; sm_120a: RTX PRO 6000).
set -eu
source=$(CDPATH= cd -- "$(dirname -- "$0")/src" && pwd)
mkdir -p "$1"
out=$(CDPATH= cd -- "$1" && pwd)
nvcc=${CUDA_HOME:+$CUDA_HOME/bin/}nvcc

targets=
for arch in ${ARCHS:-90a 120a}; do targets="$targets -gencode=arch=compute_$arch,code=sm_$arch"; done

# nvcc names temporary files by process and lets those names into the binary: keep them in a directory of its own,
# under fixed names, and compile by relative paths.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$source"/* "$work"
cd "$work"
mkdir keep
# shellcheck disable=SC2086  # one word a target
"$nvcc" -std=c++17 -O3 $targets --keep --keep-dir keep -frandom-seed=appliance_kernels \
  -Xptxas -v,-warn-spills -Xcompiler -fPIC,-fvisibility=hidden -shared -cudart static \
  -Xlinker -s -o "$out/libappliance_kernels.so" sparse_mla_decode.cu sparse_mla_prefill.cu \
  indexer_logits.cu indexer_topk.cu 2> "$out/ptxas.log" || { cat "$out/ptxas.log" >&2; exit 1; }
