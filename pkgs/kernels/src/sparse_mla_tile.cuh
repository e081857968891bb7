// What decode and prefill share: a block works through tiles of the cached tokens that one query token attends to.
//
// A block reads tiles of kTile tokens with cp.async. Warp w owns values 64w..64w+63 of every token, one scale group: it
// turns them into bf16 registers once and uses those for Q.K and, transposed in registers, for P.V. So K is neither
// loaded nor converted twice. The eight partial Q.K sums meet in shared memory, where one warp a head takes the
// softmax. Both products are computed transposed (tokens or values as the 16-wide M, heads as the 8-wide N of the mma),
// so that 8 heads fill an mma as well as 32 do.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "layout.cuh"
#include "ptx.cuh"

// A named namespace: nvcc writes a hash of the working directory into device symbols of internal linkage, and the
// library must be the same bits wherever it is built.
namespace sparse_mla {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * 32;
constexpr float kLog2e = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;
constexpr float kInf = __builtin_huge_valf();

// Shared memory of a block while it works through its tiles, in bytes.
template <class Layout, int kHeads, int kTile, int kStages>
struct Pipeline {
  static constexpr int kScales = kTile * Layout::kTokenBytes;  // of a stage: rows as they are in the cache, then scales
  static constexpr int kMask = kScales + kTile * Layout::kScaleBytes;  // which tokens are valid
  static constexpr int kStage = kMask + 16;
  static constexpr int kScoreStride = kTile + 4;  // floats a head: keeps writes free of conflicts
  static constexpr int kScores = kStages * kStage;
  static constexpr int kPipeline = kScores + kWarps * kHeads * kScoreStride * 4;
  static constexpr int kHeadsAtOnce = 32 / kTile;  // heads whose softmax a warp takes side by side
  static constexpr int kSoftmaxSteps = kHeads / (kWarps * kHeadsAtOnce);
  static_assert(kSoftmaxSteps > 0 && kHeads % (kWarps * kHeadsAtOnce) == 0, "every warp takes as many heads");
};

// fp8 e4m3 -> bf16 without its scale: exact, NaN stays NaN.
__device__ __forceinline__ void unpack_e4m3(uint32_t x, uint32_t& low, uint32_t& high) {
  low = ptx::e4m3x2_to_bf16x2(uint16_t(x)), high = ptx::e4m3x2_to_bf16x2(uint16_t(x >> 16));
}

// UE8M0 scales. A power of two commutes with rounding, so it is applied where it is cheapest: to the scores in fp32,
// and to the probabilities in bf16. At the ends of its range that would lose bits or hide an overflow of the bf16
// value; there the values themselves are scaled, and the scale becomes one.
constexpr uint32_t kScaleOne = 127;
__device__ __forceinline__ bool is_extreme(uint32_t s) { return s - 32 > 215; }
__device__ __forceinline__ float scale_f32(uint32_t s) { return __uint_as_float(s << 23); }
__device__ __forceinline__ uint32_t scale_bf16x2(uint32_t s) { return s * 0x00800080u; }
__device__ __forceinline__ uint32_t extreme_scale_bf16x2(uint32_t s) {
  return s == 0 ? 0x00400040u : s == 255 ? 0x7fc07fc0u : scale_bf16x2(s);
}

__device__ __forceinline__ uint32_t lane_id() { return threadIdx.x & 31; }

__device__ __forceinline__ uint4 load_shared(uint32_t a) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(a)
               : "memory");
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

// Integers in the order of the floats they stand for; its own inverse.
__device__ __forceinline__ int ordered(int bits) { return bits ^ (bits >> 31 & 0x7fffffff); }

template <int kWidth>
__device__ __forceinline__ float reduce_max(float v) {
  if constexpr (kWidth == 32) {
    return __int_as_float(ordered(__reduce_max_sync(~0u, ordered(__float_as_int(v)))));
  } else {
#pragma unroll
    for (int d = kWidth / 2; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, d));
    return v;
  }
}
template <int kWidth>
__device__ __forceinline__ float reduce_sum(float v) {
#pragma unroll
  for (int d = kWidth / 2; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  return v;
}

// The tokens of one tile, as one warp sees them: lane t knows token t. Invalid tokens stand at the start of the cache.
struct TileTokens {
  const uint8_t* cache;
  const uint8_t* scale;  // of this lane's token, group 0
  uint32_t row16;        // of this lane's token, units of 16 bytes from `cache`
  uint32_t valid;        // bit t: token t takes part; 0: no tile is left
};

// Deals out the tiles of a block. The indices of the first kAhead tiles are read at once, and before the lengths that
// say whether they count: more memory round trips would otherwise stand before the first key.
template <class Params, class Layout, int kTile, int kAhead>
class TileQueue {
 public:
  __device__ TileQueue(const Params& params, int row, int first, int step)
      : p(params), row_(row), window_tiles_((p.source[0].width + kTile - 1) / kTile), tile_(first), step_(step) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) raw_[i] = raw_index(tile_ + i * step_);
    lengths_[0] = length(0), lengths_[1] = length(1);
    end_ = lengths_[1] > 0 ? window_tiles_ + (lengths_[1] + kTile - 1) / kTile : (lengths_[0] + kTile - 1) / kTile;
  }

  // The next tile that holds a valid token.
  __device__ TileTokens next() {
    TileTokens t;
    do {
      t = locate(raw_[0]);
      tile_ += step_;
      if (--preloaded_ > 0) {
#pragma unroll
        for (int i = 0; i + 1 < kAhead; ++i) raw_[i] = raw_[i + 1];
      } else {  // never a load into a register that is moved before it is used: the move would wait
        raw_[0] = raw_index(tile_);
      }
    } while (t.valid == 0 && tile_ < end_);
    return t;
  }

 private:
  __device__ int raw_index(int tile) const {
    const bool extra = tile >= window_tiles_;
    const int position = (tile - (extra ? window_tiles_ : 0)) * kTile + lane_id();
    const int32_t* from = extra ? p.source[1].indices + row_ * p.source[1].indices_stride
                                : p.source[0].indices + row_ * p.source[0].indices_stride;
    return lane_id() < kTile && position < (extra ? p.source[1].width : p.source[0].width) ? __ldg(from + position)
                                                                                           : -1;
  }
  __device__ int length(int s) const {
    const int width = p.source[s].width;
    return p.source[s].lengths && width > 0 ? min(__ldg(p.source[s].lengths + row_), width) : width;
  }
  __device__ TileTokens locate(int raw) const {
    const bool extra = tile_ >= window_tiles_;
    const int position = (tile_ - (extra ? window_tiles_ : 0)) * kTile + lane_id();
    const uint32_t capacity = extra ? p.source[1].capacity : p.source[0].capacity;
    const uint32_t stride16 = extra ? p.source[1].page_stride16 : p.source[0].page_stride16;
    const int shift = extra ? p.source[1].log2_page_size : p.source[0].log2_page_size;
    const bool valid = lane_id() < kTile && position < (extra ? lengths_[1] : lengths_[0]) && uint32_t(raw) < capacity;
    const uint32_t index = valid ? raw : 0, page = index >> shift, offset = index - (page << shift);
    TileTokens t;
    t.cache = static_cast<const uint8_t*>(extra ? p.source[1].cache : p.source[0].cache);
    t.row16 = page * stride16 + offset * (Layout::kTokenBytes / 16);
    t.scale =
        t.cache + uint64_t(page) * (stride16 * 16) + ((Layout::kTokenBytes << shift) + offset * Layout::kScaleBytes);
    t.valid = __ballot_sync(~0u, valid);
    return t;
  }

  const Params& p;
  int row_, window_tiles_, tile_, step_, end_;
  int raw_[kAhead], lengths_[2], preloaded_ = kAhead;
};

// Starts the copy of a tile into one stage and notes there which tokens are valid. Every warp copies whole rows, 512
// contiguous bytes an instruction: the L1 cache takes as many cycles as an instruction touches lines.
template <class Layout, class Smem, int kTile>
__device__ __forceinline__ void fetch(const TileTokens& tile, uint32_t stage) {
  constexpr int kRows = kTile / kWarps, kTail = (Layout::kTokenBytes - 512) / 16;
  static_assert(kRows * kTail <= 32, "one instruction copies what is left of the rows");
  const int lane = lane_id(), warp = threadIdx.x / 32;
  if (threadIdx.x == 0) store_shared(stage + Smem::kMask, tile.valid);
  if (tile.valid == 0) return;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int t = warp * kRows + i;
    const uint8_t* from = tile.cache + uint64_t(__shfl_sync(~0u, tile.row16, t)) * 16 + lane * 16;
    ptx::cp_async<16>(stage + t * Layout::kTokenBytes + lane * 16, from, tile.valid >> t & 1);
  }
  const int t = warp * kRows + lane / kTail;
  const uint8_t* from = tile.cache + uint64_t(__shfl_sync(~0u, tile.row16, t)) * 16 + 512 + lane % kTail * 16;
  if (lane < kRows * kTail)
    ptx::cp_async<16>(stage + t * Layout::kTokenBytes + 512 + lane % kTail * 16, from, tile.valid >> t & 1);
  if (lane / kRows == warp)
    ptx::cp_async<Layout::kScaleBytes>(stage + Smem::kScales + lane * Layout::kScaleBytes, tile.scale,
                                       tile.valid >> lane & 1);
}

// A warp's slice of a tile, 8 x 64 values a block of tokens.
template <int kTile>
struct Slice {
  static constexpr int kBlocks = kTile / 8;
  uint32_t k[kBlocks][8];   // bf16 pairs: values 16 * (lane % 4) + 2j, + 1 of token 8i + lane / 4, without the scale
  uint32_t scale[kBlocks];  // UE8M0

  template <class Layout, class Smem>
  __device__ __forceinline__ void load(uint32_t stage) {
    const int lane = lane_id(), warp = threadIdx.x / 32, quad = lane & 3;
    const uint32_t row = stage + lane / 4 * Layout::kTokenBytes + Layout::group_offset(warp);
    if (warp < Layout::kFp8Groups) {
#pragma unroll
      for (int i = 0; i < kBlocks; ++i) {
        scale[i] = load_shared_byte(stage + Smem::kScales + (i * 8 + lane / 4) * Layout::kScaleBytes + warp);
        const uint4 raw = load_shared(row + i * 8 * Layout::kTokenBytes + quad * 16);
        unpack_e4m3(raw.x, k[i][0], k[i][1]);
        unpack_e4m3(raw.y, k[i][2], k[i][3]);
        unpack_e4m3(raw.z, k[i][4], k[i][5]);
        unpack_e4m3(raw.w, k[i][6], k[i][7]);
      }
      apply_extreme_scales();
    } else {
#pragma unroll
      for (int i = 0; i < kBlocks; ++i) {
        scale[i] = kScaleOne;
        const uint4 a = load_shared(row + i * 8 * Layout::kTokenBytes + quad * 32);
        const uint4 b = load_shared(row + i * 8 * Layout::kTokenBytes + quad * 32 + 16);
        const uint32_t raw[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
        // The multiplication by one frees the registers of k from the order of the vector loads, which would cost all
        // warps four moves before each mma.
#pragma unroll
        for (int j = 0; j < 8; ++j) k[i][j] = ptx::mul_bf16x2(raw[j], scale_bf16x2(kScaleOne));
      }
    }
  }

  // See is_extreme.
  __device__ __forceinline__ void apply_extreme_scales() {
    bool extreme = false;
#pragma unroll
    for (int i = 0; i < kBlocks; ++i) extreme |= is_extreme(scale[i]);
    if (!__any_sync(~0u, extreme)) return;
#pragma unroll
    for (int i = 0; i < kBlocks; ++i) {
      const uint32_t factor = extreme_scale_bf16x2(scale[i]);
      scale[i] = kScaleOne;
#pragma unroll
      for (int j = 0; j < 8; ++j) k[i][j] = ptx::mul_bf16x2(k[i][j], factor);
    }
  }
};

__device__ __forceinline__ uint2 pack_bf16(float4 v) {
  const __nv_bfloat162 low = __floats2bfloat162_rn(v.x, v.y), high = __floats2bfloat162_rn(v.z, v.w);
  return {reinterpret_cast<const uint32_t&>(low), reinterpret_cast<const uint32_t&>(high)};
}
// The attention of kHeads heads to the tiles first, first + step, ... of a row. Smem: a Pipeline, and places for the
// probabilities (kProbs) and the factors that the sums are rescaled by (kRescale).
template <class Params, class Layout, class Smem, int kHeads, int kTile, int kStages>
struct Attention {
  static_assert(Layout::kGroups == kWarps && Layout::kGroup == 64, "one group a warp");
  static constexpr int kTokenBlocks = kTile / 8, kHeadBlocks = kHeads / 8;
  static constexpr int kHeadsAtOnce = Smem::kHeadsAtOnce, kSoftmaxSteps = Smem::kSoftmaxSteps;
  static constexpr int kHeadBlocksAtOnce =
      kHeadBlocks * kTokenBlocks < 8 ? kHeadBlocks : 8 / kTokenBlocks;  // chains of mma

  // Starts the loads that need no other load.
  __device__ __forceinline__ Attention(const Params& p, int row, int first_head, uint8_t* smem, int first, int step)
      : queue(p, row, first, step),
        base(__cvta_generic_to_shared(smem)),
        warp(threadIdx.x / 32),
        lane(lane_id()),
        quad(lane & 3),
        octet(lane / 4),
        scale(p.softmax_scale * kLog2e),
        scores(reinterpret_cast<float*>(smem + Smem::kScores)),
        probs(reinterpret_cast<__nv_bfloat16*>(smem + Smem::kProbs)),
        rescale(reinterpret_cast<float*>(smem + Smem::kRescale)) {
#pragma unroll
    for (int n = 0; n < kHeadBlocks; ++n) {
      const auto* from =
          reinterpret_cast<const uint4*>(static_cast<const __nv_bfloat16*>(p.q) + row * p.q_batch_stride +
                                         (first_head + n * 8 + octet) * p.q_head_stride + warp * 64 + quad * 16);
      const uint4 a = __ldg(from), b = __ldg(from + 1);
      q[n][0] = a.x, q[n][1] = a.y, q[n][2] = a.z, q[n][3] = a.w;
      q[n][4] = b.x, q[n][5] = b.y, q[n][6] = b.z, q[n][7] = b.w;
    }
  }

  __device__ __forceinline__ void run() {
    TileTokens ahead = queue.next();
    auto fetch_ahead = [&](uint32_t stage) {
      fetch<Layout, Smem, kTile>(ahead, stage);
      ptx::cp_async_commit();
      if (ahead.valid) ahead = queue.next();
    };
    uint32_t free_stage = base + (kStages - 1) * Smem::kStage;
#pragma unroll 1  // one copy of the code: instructions come from memory too
    for (int s = 0; s < kStages - 1; ++s) fetch_ahead(base + s * Smem::kStage);
#pragma unroll
    for (int n = 0; n < kHeadBlocks; ++n)
#pragma unroll
      for (int d = 0; d < 4; ++d)
#pragma unroll
        for (int i = 0; i < 4; ++i) o[n][d][i] = 0.f;
#pragma unroll
    for (int s = 0; s < kSoftmaxSteps; ++s) m[s] = -kInf, l[s] = 0.f;
    uint32_t stage = base;

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
  }

  // Lanes of neighbouring octets swap, so that o[n][d] becomes four consecutive values of one head.
  __device__ __forceinline__ void make_vectors() {
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
  }

  float o[kHeadBlocks][4][4];  // o[n][d]: values 16d.. (in the order of k) of heads 8n + 2 * quad, + 1
  float m[kSoftmaxSteps], l[kSoftmaxSteps];

 private:
  // Q.K over this warp's 64 values, transposed: tokens x heads.
  __device__ __forceinline__ void store_scores(const Slice<kTile>& slice) {
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
  }

  // Softmax: lane = token. P is stored so that one vector load gives a lane of P.V its whole operand.
  __device__ __forceinline__ void softmax(uint32_t mask) {
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
  }

  // K in registers becomes V: value-major instead of token-major, its scales in the order of the pairs of P.
  __device__ __forceinline__ void transpose(Slice<kTile>& slice) {
#pragma unroll
    for (int i = 0; i < kTokenBlocks; ++i) {
      slice.scale[i] = ptx::transpose_8x8(scale_bf16x2(slice.scale[i]));
#pragma unroll
      for (int j = 0; j < 8; ++j) slice.k[i][j] = ptx::transpose_8x8(slice.k[i][j]);
    }
  }

  // P.V, transposed: values x heads.
  __device__ __forceinline__ void add_values(const Slice<kTile>& slice) {
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
  }

  TileQueue<Params, Layout, kTile, kStages> queue;
  const uint32_t base;
  const int warp, lane, quad, octet;
  const float scale;
  float* const scores;
  __nv_bfloat16* const probs;
  float* const rescale;
  uint32_t q[kHeadBlocks][8];  // q[n][j]: values 16 * quad + 2j, + 1 of head 8n + octet
};

}  // namespace sparse_mla
