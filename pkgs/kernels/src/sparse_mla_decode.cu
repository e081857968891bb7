// Sparse MLA decode: one query token a batch row, all heads of a block against the same list of cached tokens, K = V.
//
// A block reads tiles of kTile tokens with cp.async. Warp w owns values 64w..64w+63 of every token, one scale group: it
// turns them into bf16 registers once and uses those for Q.K and, transposed in registers, for P.V. So K is neither
// loaded nor converted twice. The eight partial Q.K sums meet in shared memory, where one warp a head takes the
// softmax. Both products are computed transposed (tokens or values as the 16-wide M, heads as the 8-wide N of the mma),
// so that 8 heads fill an mma as well as 32 do. Tiles are dealt to the blocks in turn: the launch depends on shapes
// only, lengths may change between graph replays. The blocks of a cluster send each other their sums, each finishes a
// share of the output; if several clusters share a row, the last one to finish (a counter that it sets back to zero)
// merges their results.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "layout.cuh"
#include "ptx.cuh"
#include "sparse_mla_decode.h"
#include "sparse_mla_tile.cuh"

// A named namespace: nvcc writes a hash of the working directory into device symbols of internal linkage, and the
// library must be the same bits wherever it is built.
namespace sparse_mla {

constexpr int kMaxCluster = 16;

// Shared memory of a block, in bytes.
template <class Layout, int kHeads, int kTile, int kStages>
struct Shared {
  static constexpr int kScales = kTile * Layout::kTokenBytes;  // of a stage: rows as they are in the cache, then scales
  static constexpr int kMask = kScales + kTile * Layout::kScaleBytes;  // which tokens are valid
  static constexpr int kStage = kMask + 16;
  static constexpr int kScoreStride = kTile + 4;  // floats a head: keeps writes free of conflicts
  static constexpr int kScores = kStages * kStage;
  static constexpr int kPipeline = kScores + kWarps * kHeads * kScoreStride * 4;
  // The merge reuses the space of the pipeline, but for what other blocks may already send.
  static constexpr int kMergeHeads = kHeads < 16 ? kHeads : 16;     // heads merged at a time
  static constexpr int kSend = kMergeHeads * Layout::kHeadDim * 4;  // after the sums that stay here
  static constexpr int kSendBytes = kMergeHeads * (Layout::kHeadDim * 2 + kMaxCluster * 4);
  static constexpr int kProbs = kPipeline;
  static constexpr int kReceived = kProbs + kHeads * kTile * 2;
  static constexpr int kRescale = kReceived + kSendBytes;
  static constexpr int kMaxSum = kRescale + kHeads * 4;    // of this block
  static constexpr int kAllMaxSum = kMaxSum + kHeads * 8;  // of all blocks of the cluster
  static constexpr int kSink = kAllMaxSum + kMaxCluster * kHeads * 8;
  static constexpr int kWeights = kSink + kHeads * 4;  // of the blocks' sums
  static constexpr int kBarrier = kWeights + kMaxCluster * kMergeHeads * 4;
  static constexpr int kMaxSumBarrier = kBarrier + 8;
  static constexpr int kFlag = kMaxSumBarrier + 8;
  static constexpr int kBytes = kFlag + 8;
  static_assert(kSend + kSendBytes <= kPipeline, "the merge has no space of its own");
  static_assert(kBytes <= 99 * 1024, "a block of sm_120 has 99 KB");
};

__device__ __forceinline__ uint2 pack_f16(float4 v, float scale) {
  const __half2 low = __floats2half2_rn(v.x * scale, v.y * scale), high = __floats2half2_rn(v.z * scale, v.w * scale);
  return {reinterpret_cast<const uint32_t&>(low), reinterpret_cast<const uint32_t&>(high)};
}
__device__ __forceinline__ float4 unpack_f16(uint2 v) {
  const float2 low = __half22float2(reinterpret_cast<const __half2&>(v.x)),
               high = __half22float2(reinterpret_cast<const __half2&>(v.y));
  return {low.x, low.y, high.x, high.y};
}
// The power of two that brings values of at most this magnitude near the upper end of f16, and its inverse.
__device__ __forceinline__ float f16_scale(float magnitude) {
  return __uint_as_float(min(268u - (__float_as_uint(magnitude) >> 23), 253u) << 23);
}
__device__ __forceinline__ float inverse_power(float scale) {
  return __uint_as_float((254u << 23) - __float_as_uint(scale));
}
__device__ __forceinline__ void add_scaled(float4& acc, float w, float4 v) {
  acc.x += w * v.x, acc.y += w * v.y, acc.z += w * v.z, acc.w += w * v.w;
}

__device__ __forceinline__ void store_output(const SparseMlaDecodeParams& p, int row, int head, int dim, float4 v) {
  const int64_t at = (int64_t(row) * p.heads + head) * 512 + dim;
  *reinterpret_cast<uint2*>(static_cast<__nv_bfloat16*>(p.out) + at) = pack_bf16(v);
}

// Partial softmaxes of one head with maxima of their own, one a lane of kWidth; a maximum of -inf: no valid token.
template <int kWidth>
struct Merged {
  float weight, m, l;  // l == 0: none saw a valid token
  __device__ explicit Merged(float2 max_sum) {
    m = reduce_max<kWidth>(max_sum.x);
    weight = ptx::exp2(max_sum.x - (m == -kInf ? 0.f : m));
    l = reduce_sum<kWidth>(weight * max_sum.y);
  }
  // What turns the weighted sum into the output. The sink joins the denominator only.
  __device__ float inverse(float sink) const {
    return l == 0.f ? 0.f : ptx::reciprocal(l + ptx::exp2(sink * kLog2e - m));
  }
  __device__ float lse() const { return l == 0.f ? -kInf : (m + ptx::log2(l)) * kLn2; }
};

template <class Layout, int kHeads, int kTile, int kStages, int kBlocksPerSm>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    sparse_mla_decode_kernel(const __grid_constant__ SparseMlaDecodeParams p) {
  using Smem = Shared<Layout, kHeads, kTile, kStages>;
  static_assert(Layout::kGroups == kWarps && Layout::kGroup == 64, "one group a warp");
  constexpr int kTokenBlocks = kTile / 8, kHeadBlocks = kHeads / 8;
  constexpr int kHeadsAtOnce = 32 / kTile;  // heads whose softmax a warp takes side by side
  constexpr int kSoftmaxSteps = kHeads / (kWarps * kHeadsAtOnce);
  constexpr int kHeadBlocksAtOnce = kHeadBlocks * kTokenBlocks < 8 ? kHeadBlocks : 8 / kTokenBlocks;  // chains of mma
  static_assert(kSoftmaxSteps > 0 && kHeads % (kWarps * kHeadsAtOnce) == 0, "every warp takes as many heads");

  extern __shared__ __align__(16) uint8_t smem[];
  const uint32_t base = __cvta_generic_to_shared(smem);
  const int warp = threadIdx.x / 32, lane = lane_id(), quad = lane & 3, octet = lane / 4;
  const int row = blockIdx.y, first_head = blockIdx.z * kHeads;

  // Loads that need no other load start first.
  TileQueue<SparseMlaDecodeParams, Layout, kTile, kStages> queue(p, row, blockIdx.x, gridDim.x);
  const float sink = p.sink && threadIdx.x < kHeads ? __ldg(p.sink + first_head + threadIdx.x) : -kInf;
  uint32_t q[kHeadBlocks][8];  // q[n][j]: values 16 * quad + 2j, + 1 of head 8n + octet
#pragma unroll
  for (int n = 0; n < kHeadBlocks; ++n) {
    const auto* from =
        reinterpret_cast<const uint4*>(static_cast<const __nv_bfloat16*>(p.q) + row * p.q_batch_stride +
                                       (first_head + n * 8 + octet) * p.q_head_stride + warp * 64 + quad * 16);
    const uint4 a = __ldg(from), b = __ldg(from + 1);
    q[n][0] = a.x, q[n][1] = a.y, q[n][2] = a.z, q[n][3] = a.w;
    q[n][4] = b.x, q[n][5] = b.y, q[n][6] = b.z, q[n][7] = b.w;
  }
  const uint32_t barrier = base + Smem::kBarrier, max_sum_barrier = base + Smem::kMaxSumBarrier;
  const int ranks = ptx::cluster_size(), rank = ptx::cluster_rank();
  const bool clustered = ranks > 1;
  // No division by a variable: it is a long routine.
  const int log2_share = __ffs(Layout::kHeadDim / 4) - __ffs(ranks), share = 1 << log2_share;
  // From one block to another: values, then a scale for each head and group that the receiver owns a part of.
  const int scale_groups = max(share / 16, 1), values_bytes = Smem::kMergeHeads * share * 8;
  const int message = values_bytes + Smem::kMergeHeads * scale_groups * 4;
  constexpr int kMaxSumBytes = kHeads * 8;
  if (clustered) {
    if (threadIdx.x == 0) {
      ptx::mbarrier_init(barrier), ptx::mbarrier_init(max_sum_barrier);
      ptx::mbarrier_expect(barrier, (ranks - 1) * message),
          ptx::mbarrier_expect(max_sum_barrier, (ranks - 1) * kMaxSumBytes);
    }
    __syncwarp();
    ptx::cluster_arrive_relaxed();
  }
  TileTokens ahead = queue.next();
  auto fetch_ahead = [&](uint32_t stage) {
    fetch<Layout, Smem, kTile>(ahead, stage);
    ptx::cp_async_commit();
    if (ahead.valid) ahead = queue.next();
  };
  uint32_t free_stage = base + (kStages - 1) * Smem::kStage;
#pragma unroll 1  // one copy of the code: instructions come from memory too
  for (int s = 0; s < kStages - 1; ++s) fetch_ahead(base + s * Smem::kStage);

  float o[kHeadBlocks][4][4] = {};  // o[n][d]: values 16d.. (in the order of k) of heads 8n + 2 * quad, + 1
  float m[kSoftmaxSteps], l[kSoftmaxSteps];
#pragma unroll
  for (int s = 0; s < kSoftmaxSteps; ++s) m[s] = -kInf, l[s] = 0.f;
  const float scale = p.softmax_scale * kLog2e;
  auto* scores = reinterpret_cast<float*>(smem + Smem::kScores);
  auto* probs = reinterpret_cast<__nv_bfloat16*>(smem + Smem::kProbs);
  auto* rescale = reinterpret_cast<float*>(smem + Smem::kRescale);
  uint32_t stage = base;

  // Q.K over this warp's 64 values, transposed: tokens x heads.
  auto store_scores = [&](const Slice<kTile>& slice) {
    const auto& k = slice.k;
#pragma unroll
    for (int first = 0; first < kHeadBlocks; first += kHeadBlocksAtOnce) {
      float s[kHeadBlocksAtOnce][kTokenBlocks / 2][4] = {};
#pragma unroll
      for (int j = 0; j < 8; j += 2)
#pragma unroll
        for (int n = 0; n < kHeadBlocksAtOnce; ++n)
#pragma unroll
          for (int t = 0; t < kTokenBlocks / 2; ++t)
            ptx::mma_bf16(s[n][t], k[2 * t][j], k[2 * t + 1][j], k[2 * t][j + 1], k[2 * t + 1][j + 1], q[first + n][j],
                          q[first + n][j + 1]);
#pragma unroll
      for (int n = 0; n < kHeadBlocksAtOnce; ++n)
#pragma unroll
        for (int t = 0; t < kTokenBlocks / 2; ++t) {
          float* at = scores + (warp * kHeads + (first + n) * 8 + 2 * quad) * Smem::kScoreStride + t * 16 + octet;
          const float low = scale_f32(slice.scale[2 * t]), high = scale_f32(slice.scale[2 * t + 1]);
          at[0] = s[n][t][0] * low, at[Smem::kScoreStride] = s[n][t][1] * low;
          at[8] = s[n][t][2] * high, at[Smem::kScoreStride + 8] = s[n][t][3] * high;
        }
    }
  };

  // Softmax: lane = token. P is stored so that one vector load gives a lane of P.V its whole operand.
  auto softmax = [&](uint32_t mask) {
    const int token = lane % kTile;
    float x[kSoftmaxSteps], tile_max[kSoftmaxSteps];
#pragma unroll
    for (int s = 0; s < kSoftmaxSteps; ++s) {
      const int head = (s * kWarps + warp) * kHeadsAtOnce + lane / kTile;
      float part[kWarps];
#pragma unroll
      for (int w = 0; w < kWarps; ++w) part[w] = scores[(w * kHeads + head) * Smem::kScoreStride + token];
      const float sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
      x[s] = mask >> token & 1 ? sum * scale : -kInf;
      tile_max[s] = reduce_max<kTile>(x[s]);
    }
#pragma unroll
    for (int s = 0; s < kSoftmaxSteps; ++s) {
      const int head = (s * kWarps + warp) * kHeadsAtOnce + lane / kTile;
      const float m_new = fmaxf(m[s], tile_max[s]);
      const float m_safe = m_new == -kInf ? 0.f : m_new;
      const float alpha = ptx::exp2(m[s] - m_safe), prob = ptx::exp2(x[s] - m_safe);
      m[s] = m_new;
      l[s] = l[s] * alpha + prob;
      probs[head * kTile + (token % 8 / 2) * (kTile / 4) + token / 8 * 2 + token % 2] = __float2bfloat16(prob);
      if (token == 0) rescale[head] = alpha;
    }
  };

  // K in registers becomes V: value-major instead of token-major, its scales in the order of the pairs of P.
  auto transpose = [&](Slice<kTile>& slice) {
#pragma unroll
    for (int i = 0; i < kTokenBlocks; ++i) {
      slice.scale[i] = ptx::transpose_8x8(scale_bf16x2(slice.scale[i]));
#pragma unroll
      for (int j = 0; j < 8; ++j) slice.k[i][j] = ptx::transpose_8x8(slice.k[i][j]);
    }
  };

  // P.V, transposed: values x heads.
  auto add_values = [&](const Slice<kTile>& slice) {
    const auto& v = slice.k;
#pragma unroll
    for (int n = 0; n < kHeadBlocks; ++n) {
      struct alignas(kTokenBlocks * 4) Probs {
        uint32_t pair[kTokenBlocks];
      };
      Probs prob = *reinterpret_cast<const Probs*>(probs + (n * 8 + octet) * kTile + quad * (kTile / 4));
#pragma unroll
      for (int i = 0; i < kTokenBlocks; ++i) prob.pair[i] = ptx::mul_bf16x2(prob.pair[i], slice.scale[i]);
      const float2 alpha = *reinterpret_cast<const float2*>(rescale + n * 8 + 2 * quad);
#pragma unroll
      for (int d = 0; d < 4; ++d)
        o[n][d][0] *= alpha.x, o[n][d][1] *= alpha.y, o[n][d][2] *= alpha.x, o[n][d][3] *= alpha.y;
#pragma unroll
      for (int i = 0; i < kTokenBlocks; i += 2)
#pragma unroll
        for (int d = 0; d < 4; ++d)
          ptx::mma_bf16(o[n][d], v[i][2 * d], v[i][2 * d + 1], v[i + 1][2 * d], v[i + 1][2 * d + 1], prob.pair[i],
                        prob.pair[i + 1]);
    }
  };

  ptx::cp_async_wait<kStages - 2>();
  __syncthreads();
  for (;;) {
    const uint32_t mask = load_shared_word(stage + Smem::kMask);
    if (mask == 0) break;     // after the last tile, in all warps
    fetch_ahead(free_stage);  // read by all warps before the last barrier but one
    Slice<kTile> slice;
    slice.template load<Layout, Smem>(stage);
    store_scores(slice);
    __syncthreads();
    free_stage = stage;
    stage = stage == base + (kStages - 1) * Smem::kStage ? base : stage + Smem::kStage;
    softmax(mask);
    transpose(slice);
    ptx::cp_async_wait<kStages - 2>();
    __syncthreads();
    add_values(slice);
  }
  ptx::cp_async_wait<0>();

  // Merge. Block r of the cluster finishes values share * r .. (in units of four) of all heads: every block sends it
  // its sums of those. Bulk copies to a barrier that counts their bytes: ordinary stores would need a fence over the
  // whole GPU. As f16 with a scale for each head and group, because the way between two blocks is narrow; what stays
  // stays fp32.
  auto* max_sum = reinterpret_cast<float2*>(smem + Smem::kMaxSum);
  auto* sinks = reinterpret_cast<float*>(smem + Smem::kSink);
  auto* weights = reinterpret_cast<float*>(smem + Smem::kWeights);
#pragma unroll
  for (int s = 0; s < kSoftmaxSteps; ++s) {
    const float sum = reduce_sum<kTile>(l[s]);
    if (lane % kTile == 0) max_sum[(s * kWarps + warp) * kHeadsAtOnce + lane / kTile] = {m[s], sum};
  }
  if (threadIdx.x < kHeads) sinks[threadIdx.x] = sink;
  const auto* all_max_sum = reinterpret_cast<const float2*>(smem + Smem::kAllMaxSum);
  // The block that this thread sends to, if any: few a warp, since the lanes of a warp start their copies one by one.
  const int peer = warp * (kMaxCluster / kWarps) + lane;
  const bool sends = lane < kMaxCluster / kWarps && peer < ranks && peer != rank;
  if (clustered) {
    ptx::fence_async();
    ptx::cluster_wait();  // all blocks have set up their barriers
    __syncthreads();
    if (sends)
      ptx::copy_to_cluster(ptx::map_to_rank(base + Smem::kAllMaxSum + rank * kMaxSumBytes, peer), base + Smem::kMaxSum,
                           kMaxSumBytes, ptx::map_to_rank(max_sum_barrier, peer));
    __syncwarp();
  }
  // Lanes of neighbouring octets swap, so that o[n][d] becomes four consecutive values of one head.
  const bool odd = octet & 1;
#pragma unroll
  for (int n = 0; n < kHeadBlocks; ++n)
#pragma unroll
    for (int d = 0; d < 4; ++d) {
      float (&a)[4] = o[n][d];
      const float x = __shfl_xor_sync(~0u, odd ? a[0] : a[1], 4), y = __shfl_xor_sync(~0u, odd ? a[2] : a[3], 4);
      if (odd)
        a[0] = x, a[2] = y;
      else
        a[1] = x, a[3] = y;
    }
  const int vector = warp * 16 + octet / 2 * 4, owner = vector >> log2_share;  // of d = 0; d = 3 has the same owner
#pragma unroll
  for (int first = 0; first < kHeads; first += Smem::kMergeHeads) {
    __syncthreads();
    if (clustered && first > 0) {  // the memory of the step before is free in all blocks
      if (threadIdx.x == 0) ptx::mbarrier_expect(barrier, (ranks - 1) * message);
      __syncwarp();
      ptx::cluster_arrive_relaxed(), ptx::cluster_wait();
    }
#pragma unroll
    for (int n = first / 8; n < (first + Smem::kMergeHeads) / 8; ++n) {
      const int head = n * 8 + 2 * quad + odd - first;
      float magnitude = 0.f;
#pragma unroll
      for (int d = 0; d < 4; ++d)
#pragma unroll
        for (int i = 0; i < 4; ++i) magnitude = fmaxf(magnitude, fabsf(o[n][d][i]));
      magnitude = fmaxf(magnitude, __shfl_xor_sync(~0u, magnitude, 8));
      magnitude = fmaxf(magnitude, __shfl_xor_sync(~0u, magnitude, 16));
      const float to_f16 = f16_scale(magnitude);
      if (owner != rank)
        *reinterpret_cast<float*>(smem + Smem::kSend + owner * message + values_bytes +
                                  (head * scale_groups + ((vector & share - 1) >> 4)) * 4) = inverse_power(to_f16);
#pragma unroll
      for (int d = 0; d < 4; ++d) {
        const float4 v{o[n][d][0], o[n][d][1], o[n][d][2], o[n][d][3]};
        // Neighbouring heads start at different banks.
        const int at = (head << log2_share) + ((vector + d & share - 1) ^ (head & 7));
        if (owner == rank)
          reinterpret_cast<float4*>(smem)[at] = v;
        else
          *reinterpret_cast<uint2*>(smem + Smem::kSend + owner * message + at * 8) = pack_f16(v, to_f16);
      }
    }
    if (clustered) {
      ptx::fence_async();
      __syncthreads();
      if (sends)
        ptx::copy_to_cluster(ptx::map_to_rank(base + Smem::kReceived + rank * message, peer),
                             base + Smem::kSend + peer * message, message, ptx::map_to_rank(barrier, peer));
      __syncwarp();
      if (first == 0) ptx::mbarrier_wait(max_sum_barrier, 0);
    }

    // Weights of the blocks, a thread for each block and head.
    if (threadIdx.x < Smem::kMergeHeads * kMaxCluster) {
      const int r = threadIdx.x % kMaxCluster, head = first + threadIdx.x / kMaxCluster;
      const float2* from = r == rank ? max_sum + head : all_max_sum + r * kHeads + head;
      const Merged<kMaxCluster> merged(r < ranks ? *from : float2{-kInf, 0.f});
      weights[threadIdx.x] = p.splits == 1 ? merged.weight * merged.inverse(sinks[head]) : merged.weight;
      if (r == 0) {
        const int split = blockIdx.x >> __ffs(ranks) - 1;
        if (p.splits > 1)
          __stcg(
              reinterpret_cast<float2*>(p.partial_ml) + (int64_t(row) * p.splits + split) * p.heads + first_head + head,
              float2{merged.m, merged.l});
        else if (rank == 0)
          p.lse[int64_t(row) * p.heads + first_head + head] = merged.lse();
      }
    }
    if (clustered) {
      ptx::mbarrier_wait(barrier, first / Smem::kMergeHeads & 1);
      if (first + Smem::kMergeHeads == kHeads) ptx::cluster_arrive_relaxed();
    }
    __syncthreads();
    for (int e = threadIdx.x; e < Smem::kMergeHeads << log2_share; e += kThreads) {
      const int local_head = e >> log2_share, head = first + local_head;
      const int local = (e & (share - 1)) ^ (local_head & 7), dim = ((rank << log2_share) + local) * 4;
      const int scale_at = values_bytes + (local_head * scale_groups + (local >> 4)) * 4;
      float4 acc{};
      add_scaled(acc, weights[local_head * kMaxCluster + rank], reinterpret_cast<const float4*>(smem)[e]);
#pragma unroll 4
      for (int i = 1; i < ranks; ++i) {
        const int r = (rank + i) & (ranks - 1);
        const uint8_t* from = smem + Smem::kReceived + r * message;
        add_scaled(acc, weights[local_head * kMaxCluster + r] * *reinterpret_cast<const float*>(from + scale_at),
                   unpack_f16(*reinterpret_cast<const uint2*>(from + e * 8)));
      }
      if (p.splits == 1) {
        store_output(p, row, first_head + head, dim, acc);
      } else {
        const int split = blockIdx.x >> __ffs(ranks) - 1;
        const int64_t part = (int64_t(row) * p.splits + split) * p.heads + first_head + head;
        __stcg(reinterpret_cast<float4*>(p.partial + part * Layout::kHeadDim + dim), acc);
      }
    }
  }
  if (clustered) ptx::cluster_wait();  // the copies of this block have been read
  if (p.splits == 1) return;

  // Several clusters share the row: of the blocks of one rank, the last to come here merges their results.
  auto* is_last = reinterpret_cast<int*>(smem + Smem::kFlag);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    uint32_t* counter = p.counters + (row * gridDim.z + blockIdx.z) * ranks + rank;
    *is_last = atomicAdd(counter, 1) == uint32_t(p.splits - 1);
    if (*is_last) *counter = 0;
  }
  __syncthreads();
  if (!*is_last) return;
  __threadfence();
  const int64_t part = int64_t(row) * p.splits * p.heads + first_head;
  auto* split_weights = reinterpret_cast<float*>(smem);  // [heads][32]
  for (int head = warp; head < kHeads; head += kWarps) {
    const Merged<32> merged(lane < p.splits
                                ? __ldcg(reinterpret_cast<const float2*>(p.partial_ml) + part + lane * p.heads + head)
                                : float2{-kInf, 0.f});
    split_weights[head * 32 + lane] = merged.weight * merged.inverse(sinks[head]);
    if (rank == 0 && lane == 0) p.lse[int64_t(row) * p.heads + first_head + head] = merged.lse();
  }
  __syncthreads();
  for (int e = threadIdx.x; e < kHeads << log2_share; e += kThreads) {
    const int head = e >> log2_share, dim = ((rank << log2_share) + (e & (share - 1))) * 4;
    float4 acc{};
#pragma unroll 8
    for (int i = 0; i < p.splits; ++i)
      add_scaled(
          acc, split_weights[head * 32 + i],
          __ldcg(reinterpret_cast<const float4*>(p.partial + (part + i * p.heads + head) * Layout::kHeadDim + dim)));
    store_output(p, row, first_head + head, dim, acc);
  }
}

// What is chosen for a head count: heads of a block (64 do not fit into the registers), tokens of a tile, tiles in
// flight, blocks that share an SM's registers.
template <int kHeads_, int kTile_, int kStages_, int kBlocksPerSm_>
struct Config {
  static constexpr int kHeads = kHeads_, kTile = kTile_, kStages = kStages_;
  static constexpr int kBytes = Shared<Fp8Ue8m0Layout, kHeads, kTile, kStages>::kBytes;
  static constexpr auto kernel = &sparse_mla_decode_kernel<Fp8Ue8m0Layout, kHeads, kTile, kStages, kBlocksPerSm_>;
};

template <class Function>
int for_heads(int heads, Function&& function) {
  switch (heads) {
    case 8:
      return function(Config<8, 32, 3, 1>{});
    case 16:
      return function(Config<16, 32, 3, 1>{});
    case 32:
    case 64:
      return function(Config<32, 32, 2, 1>{});
    default:
      return cudaErrorInvalidValue;
  }
}

cudaLaunchConfig_t launch_config(int clusters, int batch, int head_groups, int bytes, int cluster,
                                 cudaLaunchAttribute* attribute, cudaStream_t stream) {
  attribute->id = cudaLaunchAttributeClusterDimension;
  attribute->val.clusterDim = {unsigned(cluster), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(clusters * cluster, batch, head_groups);
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = bytes;
  config.stream = stream;
  config.attrs = attribute;
  config.numAttrs = cluster > 1;
  return config;
}

}  // namespace sparse_mla

int appliance_kernels_abi_version() { return kAbiVersion; }
const char* appliance_kernels_error_string(int error) { return cudaGetErrorString(cudaError_t(error)); }

int appliance_sparse_mla_decode_prepare(int heads, int* heads_per_block, int* tokens_per_tile, int* clusters) {
  using namespace sparse_mla;
  return for_heads(heads, [&](auto c) -> int {
    *heads_per_block = c.kHeads, *tokens_per_tile = c.kTile;
    cudaError_t error = cudaFuncSetAttribute(c.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, c.kBytes);
    if (error == cudaSuccess) error = cudaFuncSetAttribute(c.kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    int device, multiprocessors, blocks;
    if (error == cudaSuccess) error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
      error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, c.kernel, kThreads, c.kBytes);
    if (error != cudaSuccess) return error;
    clusters[0] = multiprocessors * blocks;
    for (int i = 1; 1 << i <= kMaxCluster; ++i) {
      cudaLaunchAttribute attribute;
      const cudaLaunchConfig_t config = launch_config(1, 1, 1, c.kBytes, 1 << i, &attribute, nullptr);
      if (cudaOccupancyMaxActiveClusters(&clusters[i], c.kernel, &config) != cudaSuccess) clusters[i] = 0;
    }
    cudaGetLastError();  // a cluster size that the device does not know is no error of the caller
    return cudaSuccess;
  });
}

int appliance_sparse_mla_decode_block(int heads, int* threads, int* shared_bytes) {
  using namespace sparse_mla;
  return for_heads(heads, [&](auto c) -> int {
    *threads = kThreads, *shared_bytes = c.kBytes;
    return cudaSuccess;
  });
}

int appliance_sparse_mla_decode(const SparseMlaDecodeParams* params, void* stream) {
  using namespace sparse_mla;
  return for_heads(params->heads, [&](auto c) -> int {
    cudaLaunchAttribute attribute;
    const cudaLaunchConfig_t config = launch_config(params->splits, params->batch, params->heads / c.kHeads, c.kBytes,
                                                    params->cluster, &attribute, static_cast<cudaStream_t>(stream));
    return cudaLaunchKernelEx(&config, c.kernel, *params);
  });
}
