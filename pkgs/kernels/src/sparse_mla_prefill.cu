// Sparse MLA prefill: many query tokens, each with a list of cached tokens of its own, K = V.
//
// A block takes one query token and a group of its heads, and works through all tiles alone (sparse_mla_tile.cuh):
// there are more query tokens than blocks that run at once, so nothing is split and nothing is merged. Two blocks share
// a multiprocessor where registers allow it, one works while the other waits.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "layout.cuh"
#include "ptx.cuh"
#include "sparse_mla_prefill.h"
#include "sparse_mla_tile.cuh"

namespace sparse_mla {

template <class Layout, int kHeads, int kTile, int kStages>
struct PrefillShared : Pipeline<Layout, kHeads, kTile, kStages> {
  using Base = Pipeline<Layout, kHeads, kTile, kStages>;
  static constexpr int kProbs = Base::kPipeline;
  static constexpr int kRescale = kProbs + kHeads * kTile * 2;
  static constexpr int kInverse = kRescale + kHeads * 4;  // of the softmax denominators
  static constexpr int kBytes = kInverse + kHeads * 4;
  static_assert(kBytes <= 99 * 1024, "a block of sm_120 has 99 KB");
};

template <class Layout, int kHeads, int kTile, int kStages, int kBlocksPerSm>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    sparse_mla_prefill_kernel(const __grid_constant__ SparseMlaPrefillParams p) {
  using Smem = PrefillShared<Layout, kHeads, kTile, kStages>;
  extern __shared__ __align__(16) uint8_t smem[];
  const int warp = threadIdx.x / 32, lane = lane_id(), quad = lane & 3, octet = lane / 4;
  const int row = blockIdx.y, first_head = blockIdx.x * kHeads;

  Attention<SparseMlaPrefillParams, Layout, Smem, kHeads, kTile, kStages> attention(p, row, first_head, smem, 0, 1);
  attention.run();

  auto* inverse = reinterpret_cast<float*>(smem + Smem::kInverse);
#pragma unroll
  for (int s = 0; s < Smem::kSoftmaxSteps; ++s) {
    const float m = attention.m[s], l = reduce_sum<kTile>(attention.l[s]);
    const int head = (s * kWarps + warp) * Smem::kHeadsAtOnce + lane / kTile;
    if (lane % kTile == 0) {
      // The sink joins the denominator only.
      const float sink = p.sink ? __ldg(p.sink + first_head + head) : -kInf;
      inverse[head] = l == 0.f ? 0.f : ptx::reciprocal(l + ptx::exp2(sink * kLog2e - m));
      p.lse[int64_t(row) * p.heads + first_head + head] = l == 0.f ? -kInf : (m + ptx::log2(l)) * kLn2;
    }
  }
  attention.make_vectors();
  __syncthreads();
#pragma unroll
  for (int n = 0; n < kHeads / 8; ++n) {
    const int head = n * 8 + 2 * quad + (octet & 1);
    const float factor = inverse[head];
    auto* out = static_cast<__nv_bfloat16*>(p.out) + (int64_t(row) * p.heads + first_head + head) * Layout::kHeadDim +
                warp * 64 + octet / 2 * 16;
#pragma unroll
    for (int d = 0; d < 4; d += 2) {
      const float (&a)[4] = attention.o[n][d];
      const float (&b)[4] = attention.o[n][d + 1];
      const uint2 low = pack_bf16({a[0] * factor, a[1] * factor, a[2] * factor, a[3] * factor});
      const uint2 high = pack_bf16({b[0] * factor, b[1] * factor, b[2] * factor, b[3] * factor});
      *reinterpret_cast<uint4*>(out + d * 4) = {low.x, low.y, high.x, high.y};
    }
  }
}

// What is chosen for a head count: heads of a block, tokens of a tile, tiles in flight, blocks that share a
// multiprocessor's registers.
template <int kHeads_, int kTile, int kStages, int kBlocksPerSm>
struct PrefillConfig {
  static constexpr int kHeads = kHeads_;
  static constexpr int kBytes = PrefillShared<Fp8Ue8m0Layout, kHeads, kTile, kStages>::kBytes;
  static constexpr auto kernel = &sparse_mla_prefill_kernel<Fp8Ue8m0Layout, kHeads, kTile, kStages, kBlocksPerSm>;
};

template <class Function>
int for_prefill_heads(int heads, Function&& function) {
  switch (heads) {
    case 8:
      return function(PrefillConfig<8, 32, 2, 2>{});
    case 16:
      return function(PrefillConfig<16, 16, 3, 2>{});
    case 32:
    case 64:
      return function(PrefillConfig<32, 32, 2, 1>{});
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace sparse_mla

int appliance_sparse_mla_prefill_prepare(int heads, int* heads_per_block, int* blocks) {
  using namespace sparse_mla;
  return for_prefill_heads(heads, [&](auto c) -> int {
    int device, multiprocessors, per_multiprocessor;
    cudaError_t error = cudaFuncSetAttribute(c.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, c.kBytes);
    if (error == cudaSuccess) error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
      error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, c.kernel, kThreads, c.kBytes);
    if (error == cudaSuccess) *heads_per_block = c.kHeads, *blocks = multiprocessors * per_multiprocessor;
    return error;
  });
}

int appliance_sparse_mla_prefill_block(int heads, int* threads, int* shared_bytes) {
  using namespace sparse_mla;
  return for_prefill_heads(heads, [&](auto c) -> int {
    *threads = kThreads, *shared_bytes = c.kBytes;
    return cudaSuccess;
  });
}

int appliance_sparse_mla_prefill(const SparseMlaPrefillParams* params, void* stream) {
  using namespace sparse_mla;
  return for_prefill_heads(params->heads, [&](auto c) -> int {
    const dim3 grid(params->heads / c.kHeads, params->rows);
    c.kernel<<<grid, kThreads, c.kBytes, static_cast<cudaStream_t>(stream)>>>(*params);
    return cudaPeekAtLastError();
  });
}
