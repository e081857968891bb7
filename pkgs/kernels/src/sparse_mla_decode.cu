// Sparse MLA decode: one query token a batch row, all heads of a rank against the same list of cached tokens, K = V.
//
// A block reads tiles of kTile tokens. Warp w owns values 64w..64w+63 of every token: it fetches them with cp.async into
// slots of its own threads, turns them into bf16 registers once and uses those for Q.K and, transposed in registers,
// for P.V. So no block-wide barrier stands between memory and use, and K is neither loaded nor converted twice. The
// eight partial Q.K sums meet in shared memory, where one warp a head takes the softmax.
// Both products are computed transposed (tokens or values as the 16-wide M, heads as the 8-wide N of the mma), so that
// 8 heads fill an mma as well as 64 do.
// Tiles are dealt to the blocks in turn: the launch depends on shapes only, lengths may change between graph replays.
// The blocks of a cluster merge through distributed shared memory; if several clusters share a row, the last one to
// finish (a counter that it sets back to zero) merges their results.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "layout.cuh"
#include "ptx.cuh"
#include "sparse_mla_decode.h"

// A named namespace: nvcc writes a hash of the working directory into device symbols of internal linkage, and the library
// must be the same bits wherever it is built.
namespace sparse_mla {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * 32;
constexpr float kLog2e = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;
constexpr float kInf = __builtin_huge_valf();

// Shared memory of a block, in bytes. The merge reuses the space of the pipeline.
template <class Layout, int kHeads, int kTile, int kStages>
struct Shared {
  static constexpr int kSlots = kTile / 8;                           // 16-byte slots of a thread in a stage
  static constexpr int kRotary = kThreads * kSlots * 16;             // second half of the bf16 group
  static constexpr int kScales = kRotary + 32 * kSlots * 16;
  static constexpr int kMasks = kScales + kWarps * kTile * 4;        // which tokens are valid, a word for each warp
  static constexpr int kStage = kMasks + kWarps * 4;
  static constexpr int kScoreStride = kTile + 4;                     // floats a head: keeps writes free of conflicts
  static constexpr int kScores = kStages * kStage;
  static constexpr int kPipeline = kScores + kWarps * kHeads * kScoreStride * 4;
  static constexpr int kMergeHeads = kHeads < 32 ? kHeads : 32;      // heads merged at a time
  static constexpr int kMergeStride = Layout::kHeadDim + 4;          // floats a head, likewise
  static constexpr int kMerge = kMergeHeads * kMergeStride * 4;
  static constexpr int kProbs = kPipeline > kMerge ? kPipeline : kMerge;
  static constexpr int kRescale = kProbs + kHeads * kTile * 2;
  static constexpr int kMaxSum = kRescale + kHeads * 4;
  static constexpr int kFlag = kMaxSum + kHeads * 8;
  static constexpr int kBytes = kFlag + 16;
  static_assert(kBytes <= 99 * 1024, "a block of sm_120 has 99 KB");
};

// fp8 e4m3 -> bf16, four values, each divided by 2^120: the exponent bits move, the multiplication by the scale
// (see scale_factor) puts the bias right and also turns subnormals into what they mean.
__device__ __forceinline__ void unpack_e4m3(uint32_t x, uint32_t& low, uint32_t& high) {
  const uint32_t a = __byte_perm(x, 0, 0x1404), b = __byte_perm(x, 0, 0x3424);
  low = (a & 0x80008000u) | ((a >> 4) & 0x07f007f0u);
  high = (b & 0x80008000u) | ((b >> 4) & 0x07f007f0u);
}

// True if one of the 16 bytes is the NaN of e4m3fn (0x7f or 0xff), which the unpacking above would read as a number.
__device__ __forceinline__ bool has_nan_e4m3(uint4 x) {
  constexpr uint32_t kMagnitude = 0x7f7f7f7fu, kOne = 0x01010101u;
  return (((x.x & kMagnitude) + kOne) | ((x.y & kMagnitude) + kOne) | ((x.z & kMagnitude) + kOne) |
          ((x.w & kMagnitude) + kOne)) & 0x80808080u;
}

// The two bf16 factors whose product is 2^120 * 2^(s - 127). One alone cannot hold the upper half of the scales.
constexpr int kOneFactorScale = 134;
__device__ __forceinline__ uint32_t scale_factor(uint32_t s) {
  return (min(s, uint32_t(kOneFactorScale)) + 120) * 0x00800080u;
}
__device__ __forceinline__ uint32_t large_scale_factor(uint32_t s) {
  return s == 255 ? 0x7fc07fc0u : (max(s, uint32_t(kOneFactorScale)) - 7) * 0x00800080u;
}

__device__ __forceinline__ uint32_t lane_id() { return threadIdx.x & 31; }

__device__ __forceinline__ uint4 load_shared(uint32_t a) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(a) : "memory");
  return v;
}

__device__ __forceinline__ uint32_t load_shared_word(uint32_t a) {
  uint32_t v;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(a) : "memory");
  return v;
}
__device__ __forceinline__ uint32_t load_shared_byte(uint32_t a) {
  uint32_t v;
  asm volatile("ld.shared.u8 %0, [%1];" : "=r"(v) : "r"(a) : "memory");
  return v;
}
__device__ __forceinline__ void store_shared(uint32_t a, uint32_t v) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(a), "r"(v) : "memory");
}

template <int kWidth>
__device__ __forceinline__ float reduce_max(float v) {
#pragma unroll
  for (int d = kWidth / 2; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, d));
  return v;
}
template <int kWidth>
__device__ __forceinline__ float reduce_sum(float v) {
#pragma unroll
  for (int d = kWidth / 2; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  return v;
}

// The tokens of one tile, as one warp sees them: lane t knows token t.
struct TileTokens {
  int source;      // which cache
  int index;       // flat token number, 0 where invalid
  uint32_t valid;  // bit t: token t takes part
};

// Two memory round trips stand before the first data: the index and the length. Reading the index needs no length.
template <int kTile>
struct TokenLists {
  const SparseMlaDecodeParams& p;
  int batch;
  int tiles[2];  // tiles of each list by its width

  __device__ TokenLists(const SparseMlaDecodeParams& params, int row) : p(params), batch(row) {
    tiles[0] = (p.source[0].width + kTile - 1) / kTile;
    tiles[1] = (p.source[1].width + kTile - 1) / kTile;
  }
  __device__ int raw_index(int tile) const {
    const int s = tile >= tiles[0];
    const int position = (tile - (s ? tiles[0] : 0)) * kTile + lane_id();
    if (tile >= tiles[0] + tiles[1] || lane_id() >= kTile || position >= p.source[s].width) return -1;
    return __ldg(p.source[s].indices + batch * p.source[s].indices_stride + position);
  }
  __device__ int length(int s) const {
    if (p.source[s].width == 0) return 0;
    return p.source[s].lengths ? min(__ldg(p.source[s].lengths + batch), p.source[s].width) : p.source[s].width;
  }
  __device__ TileTokens tokens(int tile, int raw, const int (&lengths)[2]) const {
    const int s = tile >= tiles[0];
    const int position = (tile - (s ? tiles[0] : 0)) * kTile + lane_id();
    const bool valid = position < (s ? lengths[1] : lengths[0]) && uint32_t(raw) < uint32_t(p.source[s].capacity);
    return {s, valid ? raw : 0, __ballot_sync(~0u, valid)};
  }
};

// Starts the copy of this warp's slice of a tile into one stage and notes there which tokens are valid.
template <class Layout, class Smem, int kTile>
__device__ __forceinline__ void fetch(const SparseMlaDecodeParams& p, const TileTokens& tile, uint32_t stage) {
  const int lane = lane_id(), warp = threadIdx.x / 32, quad = lane & 3;
  const SparseMlaSource& src = p.source[tile.source];
  const auto* cache = static_cast<const uint8_t*>(src.cache);
  const int shift = src.log2_page_size, page_mask = (1 << shift) - 1;
  const bool fp8 = warp < Layout::kFp8Groups;
  if (lane == 0) store_shared(stage + Smem::kMasks + warp * 4, tile.valid);
  if (tile.valid == 0) return;
  if (fp8 && lane < kTile) {
    const uint8_t* scale = cache + int64_t(tile.index >> shift) * src.page_stride +
                           (Layout::kTokenBytes << shift) + (tile.index & page_mask) * Layout::kScaleBytes;
    ptx::cp_async_4(stage + Smem::kScales + (warp * kTile + lane) * 4, scale + (warp & ~3), tile.valid >> lane & 1);
  }
#pragma unroll
  for (int i = 0; i < kTile / 8; ++i) {
    const int t = i * 8 + lane / 4;
    const int index = __shfl_sync(~0u, tile.index, t);
    const bool valid = tile.valid >> t & 1;
    const uint8_t* row = cache + int64_t(index >> shift) * src.page_stride +
                         (index & page_mask) * Layout::kTokenBytes + Layout::group_offset(warp);
    ptx::cp_async_16(stage + (i * kThreads + threadIdx.x) * 16, row + quad * (fp8 ? 16 : 32), valid);
    if (!fp8) ptx::cp_async_16(stage + Smem::kRotary + (i * 32 + lane) * 16, row + quad * 32 + 16, valid);
  }
}

// Reads a fetched slice as bf16 pairs: k[i][j] of a lane holds values 16 * (lane % 4) + 2j, + 1 of token 8i + lane / 4.
template <class Layout, class Smem, int kTile>
__device__ __forceinline__ void dequantize(uint32_t stage, uint32_t (&k)[kTile / 8][8]) {
  const int lane = lane_id(), warp = threadIdx.x / 32;
  if (warp < Layout::kFp8Groups) {
    uint32_t scale[kTile / 8];
    bool large = false;
#pragma unroll
    for (int i = 0; i < kTile / 8; ++i) {
      scale[i] = load_shared_byte(stage + Smem::kScales + (warp * kTile + i * 8 + lane / 4) * 4 + (warp & 3));
      const uint4 raw = load_shared(stage + (i * kThreads + threadIdx.x) * 16);
      if (has_nan_e4m3(raw)) scale[i] = 255;
      large |= scale[i] > kOneFactorScale;
      unpack_e4m3(raw.x, k[i][0], k[i][1]);
      unpack_e4m3(raw.y, k[i][2], k[i][3]);
      unpack_e4m3(raw.z, k[i][4], k[i][5]);
      unpack_e4m3(raw.w, k[i][6], k[i][7]);
      const uint32_t factor = scale_factor(scale[i]);
#pragma unroll
      for (int j = 0; j < 8; ++j) k[i][j] = ptx::mul_bf16x2(k[i][j], factor);
    }
    if (__any_sync(~0u, large)) {
#pragma unroll
      for (int i = 0; i < kTile / 8; ++i) {
        const uint32_t factor = large_scale_factor(scale[i]);
#pragma unroll
        for (int j = 0; j < 8; ++j) k[i][j] = ptx::mul_bf16x2(k[i][j], factor);
      }
    }
  } else {
#pragma unroll
    for (int i = 0; i < kTile / 8; ++i) {
      const uint4 a = load_shared(stage + (i * kThreads + threadIdx.x) * 16);
      const uint4 b = load_shared(stage + Smem::kRotary + (i * 32 + lane) * 16);
      k[i][0] = a.x, k[i][1] = a.y, k[i][2] = a.z, k[i][3] = a.w;
      k[i][4] = b.x, k[i][5] = b.y, k[i][6] = b.z, k[i][7] = b.w;
    }
  }
}

// Divides by the softmax denominator and stores four values of one head. l == 0: no valid token.
__device__ __forceinline__ void finish(const SparseMlaDecodeParams& p, int row, int head, int dim, float4 acc, float m,
                                       float l) {
  const float sink = p.sink ? ptx::exp2(__ldg(p.sink + head) * kLog2e - m) : 0.f;
  const float inverse = l == 0.f ? 0.f : 1.f / (l + sink);
  const int64_t at = int64_t(row) * p.heads + head;
  __nv_bfloat162 low = __floats2bfloat162_rn(acc.x * inverse, acc.y * inverse);
  __nv_bfloat162 high = __floats2bfloat162_rn(acc.z * inverse, acc.w * inverse);
  uint2 packed{reinterpret_cast<uint32_t&>(low), reinterpret_cast<uint32_t&>(high)};
  *reinterpret_cast<uint2*>(static_cast<__nv_bfloat16*>(p.out) + at * 512 + dim) = packed;
  if (dim == 0) p.lse[at] = l == 0.f ? -kInf : (m + log2f(l)) * kLn2;
}

// Weights and common maximum of up to 32 partial softmaxes; lane i holds the i-th (maximum, sum).
struct Merge {
  float weight, m, l;
  __device__ explicit Merge(float2 ml) {
    m = reduce_max<32>(ml.x);
    weight = ml.x == -kInf ? 0.f : ptx::exp2(ml.x - m);
    l = reduce_sum<32>(weight * ml.y);
  }
};

__device__ __forceinline__ void add_scaled(float4& acc, float w, float4 v) {
  acc.x += w * v.x, acc.y += w * v.y, acc.z += w * v.z, acc.w += w * v.w;
}

template <class Layout, int kHeads, int kTile, int kStages, int kBlocksPerSm>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
sparse_mla_decode_kernel(const __grid_constant__ SparseMlaDecodeParams p) {
  using Smem = Shared<Layout, kHeads, kTile, kStages>;
  static_assert(Layout::kGroups == kWarps && Layout::kGroup == 64, "one group a warp");
  constexpr int kTokenBlocks = kTile / 8, kHeadBlocks = kHeads / 8;
  constexpr int kHeadsAtOnce = 32 / kTile;  // heads whose softmax a warp takes side by side
  constexpr int kSoftmaxSteps = kHeads / (kWarps * kHeadsAtOnce);
  static_assert(kSoftmaxSteps > 0 && kHeads % (kWarps * kHeadsAtOnce) == 0, "every warp takes as many heads");

  extern __shared__ __align__(16) uint8_t smem[];
  const uint32_t base = __cvta_generic_to_shared(smem);
  const int warp = threadIdx.x / 32, lane = lane_id(), quad = lane & 3, octet = lane / 4;
  const int row = blockIdx.y;
  const TokenLists<kTile> lists(p, row);
  const int step = gridDim.x;

  // Everything that needs no other load starts here.
  int raw[kStages];
#pragma unroll
  for (int s = 0; s < kStages; ++s) raw[s] = lists.raw_index(blockIdx.x + s * step);
  const int lengths[2] = {lists.length(0), lists.length(1)};
  uint32_t q[kHeadBlocks][8];  // q[n][j]: values 16 * quad + 2j, + 1 of head 8n + octet
#pragma unroll
  for (int n = 0; n < kHeadBlocks; ++n) {
    const auto* from = reinterpret_cast<const uint4*>(static_cast<const __nv_bfloat16*>(p.q) + row * p.q_batch_stride +
                                                      (n * 8 + octet) * p.q_head_stride + warp * 64 + quad * 16);
    const uint4 a = __ldg(from), b = __ldg(from + 1);
    q[n][0] = a.x, q[n][1] = a.y, q[n][2] = a.z, q[n][3] = a.w;
    q[n][4] = b.x, q[n][5] = b.y, q[n][6] = b.z, q[n][7] = b.w;
  }
  const int end = lengths[1] > 0 ? lists.tiles[0] + (lengths[1] + kTile - 1) / kTile : (lengths[0] + kTile - 1) / kTile;
#pragma unroll
  for (int s = 0; s < kStages; ++s) {
    fetch<Layout, Smem, kTile>(p, lists.tokens(blockIdx.x + s * step, raw[s], lengths), base + s * Smem::kStage);
    ptx::cp_async_commit();
  }
  int raw_next = lists.raw_index(blockIdx.x + kStages * step);

  float o[kHeadBlocks][4][4] = {};  // o[n][d]: values 16d.. (in the order of k) of heads 8n + 2 * quad, + 1
  float m[kSoftmaxSteps], l[kSoftmaxSteps];
#pragma unroll
  for (int s = 0; s < kSoftmaxSteps; ++s) m[s] = -kInf, l[s] = 0.f;
  const float scale = p.softmax_scale * kLog2e;
  uint32_t stage = base;

  for (int tile = blockIdx.x; tile < end; tile += step) {
    ptx::cp_async_wait<kStages - 1>();
    __syncwarp();
    const uint32_t mask = load_shared_word(stage + Smem::kMasks + warp * 4);
    uint32_t k[kTokenBlocks][8];
    dequantize<Layout, Smem, kTile>(stage, k);
    __syncwarp();
    fetch<Layout, Smem, kTile>(p, lists.tokens(tile + kStages * step, raw_next, lengths), stage);
    ptx::cp_async_commit();
    raw_next = lists.raw_index(tile + (kStages + 1) * step);
    stage = stage == base + (kStages - 1) * Smem::kStage ? base : stage + Smem::kStage;
    if (mask == 0) continue;  // the same in all warps

    // Q.K over this warp's 64 values, transposed: tokens x heads.
    auto* scores = reinterpret_cast<float*>(smem + Smem::kScores);
#pragma unroll
    for (int n = 0; n < kHeadBlocks; ++n) {
#pragma unroll
      for (int t = 0; t < kTokenBlocks / 2; ++t) {
        float s[4] = {};
#pragma unroll
        for (int j = 0; j < 8; j += 2)
          ptx::mma_bf16(s, k[2 * t][j], k[2 * t + 1][j], k[2 * t][j + 1], k[2 * t + 1][j + 1], q[n][j], q[n][j + 1]);
        float* at = scores + (warp * kHeads + n * 8 + 2 * quad) * Smem::kScoreStride + t * 16 + octet;
        at[0] = s[0], at[Smem::kScoreStride] = s[1], at[8] = s[2], at[Smem::kScoreStride + 8] = s[3];
      }
    }
    __syncthreads();

    // Softmax: lane = token. P is stored so that one vector load gives a lane of P.V its whole operand.
    auto* probs = reinterpret_cast<__nv_bfloat16*>(smem + Smem::kProbs);
    auto* rescale = reinterpret_cast<float*>(smem + Smem::kRescale);
    const int token = lane % kTile;
#pragma unroll
    for (int s = 0; s < kSoftmaxSteps; ++s) {
      const int head = (s * kWarps + warp) * kHeadsAtOnce + lane / kTile;
      float x = 0.f;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) x += scores[(w * kHeads + head) * Smem::kScoreStride + token];
      x = mask >> token & 1 ? x * scale : -kInf;
      const float m_new = fmaxf(m[s], reduce_max<kTile>(x));
      const float m_safe = m_new == -kInf ? 0.f : m_new;
      const float alpha = ptx::exp2(m[s] - m_safe), prob = ptx::exp2(x - m_safe);
      m[s] = m_new;
      l[s] = l[s] * alpha + prob;
      probs[head * kTile + (token % 8 / 2) * (kTile / 4) + token / 8 * 2 + token % 2] = __float2bfloat16(prob);
      if (token == 0) rescale[head] = alpha;
    }
    // K in registers becomes V: value-major instead of token-major.
#pragma unroll
    for (int i = 0; i < kTokenBlocks; ++i)
#pragma unroll
      for (int j = 0; j < 8; ++j) k[i][j] = ptx::transpose_8x8(k[i][j]);
    __syncthreads();

    // P.V, transposed: values x heads.
#pragma unroll
    for (int n = 0; n < kHeadBlocks; ++n) {
      struct alignas(kTokenBlocks * 4) Probs { uint32_t pair[kTokenBlocks]; };
      const Probs prob = *reinterpret_cast<const Probs*>(probs + (n * 8 + octet) * kTile + quad * (kTile / 4));
      const float2 alpha = *reinterpret_cast<const float2*>(rescale + n * 8 + 2 * quad);
#pragma unroll
      for (int d = 0; d < 4; ++d) {
        float(&acc)[4] = o[n][d];
        acc[0] *= alpha.x, acc[1] *= alpha.y, acc[2] *= alpha.x, acc[3] *= alpha.y;
#pragma unroll
        for (int i = 0; i < kTokenBlocks; i += 2)
          ptx::mma_bf16(acc, k[i][2 * d], k[i][2 * d + 1], k[i + 1][2 * d], k[i + 1][2 * d + 1], prob.pair[i],
                        prob.pair[i + 1]);
      }
    }
  }

  // Merge over the cluster: every block lays its sums out in shared memory, every block adds up a share of the outputs.
  auto* max_sum = reinterpret_cast<float2*>(smem + Smem::kMaxSum);
#pragma unroll
  for (int s = 0; s < kSoftmaxSteps; ++s) {
    const float sum = reduce_sum<kTile>(l[s]);
    if (lane % kTile == 0) max_sum[(s * kWarps + warp) * kHeadsAtOnce + lane / kTile] = {m[s], sum};
  }
  const int ranks = ptx::cluster_size(), rank = ptx::cluster_rank();
  const int split = blockIdx.x / ranks;
  constexpr int kVectors = Layout::kHeadDim / 4;  // float4 a head
#pragma unroll
  for (int first = 0; first < kHeads; first += Smem::kMergeHeads) {
    if (first == 0) __syncthreads(); else ptx::cluster_arrive(), ptx::cluster_wait();
#pragma unroll
    for (int n = first / 8; n < (first + Smem::kMergeHeads) / 8; ++n) {
#pragma unroll
      for (int d = 0; d < 4; ++d) {
        // Lanes of neighbouring octets swap, so that each holds four consecutive values of one head.
        const float(&a)[4] = o[n][d];
        const bool odd = octet & 1;
        const float x = __shfl_xor_sync(~0u, odd ? a[0] : a[1], 4), y = __shfl_xor_sync(~0u, odd ? a[2] : a[3], 4);
        const float4 v = odd ? float4{x, a[1], y, a[3]} : float4{a[0], x, a[2], y};
        const int head = n * 8 + 2 * quad + odd - first, dim = warp * 64 + octet / 2 * 16 + d * 4;
        *reinterpret_cast<float4*>(smem + (head * Smem::kMergeStride + dim) * 4) = v;
      }
    }
    ptx::cluster_arrive(), ptx::cluster_wait();
    for (int g = rank * kThreads + threadIdx.x; g < Smem::kMergeHeads * kVectors; g += ranks * kThreads) {
      const int head = first + g / kVectors, dim = g % kVectors * 4;  // one head for a whole warp
      const Merge merge(lane < ranks ? ptx::load_cluster_f2(ptx::map_to_rank(base + Smem::kMaxSum + head * 8, lane))
                                     : float2{-kInf, 0.f});
      const uint32_t at = base + ((head - first) * Smem::kMergeStride + dim) * 4;
      float4 acc{};
#pragma unroll 8
      for (int r = 0; r < ranks; ++r)
        add_scaled(acc, __shfl_sync(~0u, merge.weight, r), ptx::load_cluster_f4(ptx::map_to_rank(at, r)));
      if (p.splits == 1) {
        finish(p, row, head, dim, acc, merge.m, merge.l);
      } else {
        const int64_t part = (int64_t(row) * p.splits + split) * kHeads + head;
        __stcg(reinterpret_cast<float4*>(p.partial + part * Layout::kHeadDim + dim), acc);
        if (lane == 0) __stcg(reinterpret_cast<float2*>(p.partial_ml) + part, float2{merge.m, merge.l});
      }
    }
  }
  ptx::cluster_arrive();  // shared memory of this block may be read until all have arrived

  if (p.splits > 1) {
    auto* is_last = reinterpret_cast<int*>(smem + Smem::kFlag);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      uint32_t* counter = p.counters + row * ranks + rank;
      *is_last = atomicAdd(counter, 1) == uint32_t(p.splits - 1);
      if (*is_last) *counter = 0;
    }
    __syncthreads();
    if (*is_last) {
      __threadfence();
#pragma unroll
      for (int first = 0; first < kHeads; first += Smem::kMergeHeads) {
        for (int g = rank * kThreads + threadIdx.x; g < Smem::kMergeHeads * kVectors; g += ranks * kThreads) {
          const int head = first + g / kVectors, dim = g % kVectors * 4;
          const int64_t part = int64_t(row) * p.splits * kHeads + head;
          const Merge merge(lane < p.splits ? __ldcg(reinterpret_cast<const float2*>(p.partial_ml) + part + lane * kHeads)
                                            : float2{-kInf, 0.f});
          float4 acc{};
#pragma unroll 8
          for (int s = 0; s < p.splits; ++s) {
            const float* from = p.partial + (part + s * kHeads) * Layout::kHeadDim + dim;
            add_scaled(acc, __shfl_sync(~0u, merge.weight, s), __ldcg(reinterpret_cast<const float4*>(from)));
          }
          finish(p, row, head, dim, acc, merge.m, merge.l);
        }
      }
    }
  }
  ptx::cluster_wait();
}

// What is chosen for a head count: tokens of a tile, tiles in flight, blocks that share an SM's registers.
template <int kHeads_, int kTile_, int kStages_, int kBlocksPerSm_>
struct Config {
  static constexpr int kHeads = kHeads_, kTile = kTile_, kStages = kStages_, kBlocksPerSm = kBlocksPerSm_;
  static constexpr int kBytes = Shared<Fp8Ue8m0Layout, kHeads, kTile, kStages>::kBytes;
  static constexpr auto kernel = &sparse_mla_decode_kernel<Fp8Ue8m0Layout, kHeads, kTile, kStages, kBlocksPerSm>;
};

template <class Function>
int for_heads(int heads, Function&& function) {
  switch (heads) {
    case 8: return function(Config<8, 32, 3, 2>{});
    case 16: return function(Config<16, 32, 3, 2>{});
    case 32: return function(Config<32, 32, 3, 1>{});
    case 64: return function(Config<64, 16, 4, 1>{});
    default: return cudaErrorInvalidValue;
  }
}

cudaLaunchConfig_t launch_config(int clusters, int batch, int bytes, int cluster, cudaLaunchAttribute* attribute,
                                 cudaStream_t stream) {
  attribute->id = cudaLaunchAttributeClusterDimension;
  attribute->val.clusterDim = {unsigned(cluster), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(clusters * cluster, batch);
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

int appliance_sparse_mla_decode_prepare(int heads, int* tokens_per_tile, int* max_cluster, int* blocks_per_sm) {
  using namespace sparse_mla;
  return for_heads(heads, [&](auto c) -> int {
    *tokens_per_tile = c.kTile;
    cudaError_t error = cudaFuncSetAttribute(c.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, c.kBytes);
    if (error == cudaSuccess) error = cudaFuncSetAttribute(c.kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (error == cudaSuccess)
      error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks_per_sm, c.kernel, kThreads, c.kBytes);
    if (error != cudaSuccess) return error;
    *max_cluster = 1;
    for (int cluster = 16; cluster > 1; cluster /= 2) {
      cudaLaunchAttribute attribute;
      const cudaLaunchConfig_t config = launch_config(1, 1, c.kBytes, cluster, &attribute, nullptr);
      int active = 0;
      if (cudaOccupancyMaxActiveClusters(&active, c.kernel, &config) == cudaSuccess && active > 0) {
        *max_cluster = cluster;
        break;
      }
    }
    cudaGetLastError();  // a cluster size that does not fit is no error of the caller
    return cudaSuccess;
  });
}

int appliance_sparse_mla_decode(const SparseMlaDecodeParams* params, void* stream) {
  using namespace sparse_mla;
  return for_heads(params->heads, [&](auto c) -> int {
    cudaLaunchAttribute attribute;
    const cudaLaunchConfig_t config = launch_config(params->splits, params->batch, c.kBytes, params->cluster,
                                                    &attribute, static_cast<cudaStream_t>(stream));
    return cudaLaunchKernelEx(&config, c.kernel, *params);
  });
}
