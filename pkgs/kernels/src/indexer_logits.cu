// Logits of DeepSeek's sparse-attention indexer (DeepSeek-V3.2, "lightning indexer"), one query token a row:
// logit[t] = scale[t] * sum over 64 heads of weight[h] * max(0, q[h] . k[t]), 128 values, e4m3, paged keys.
//
// The keys are read once and everything else stays in registers: a warp keeps the whole query of its row (64 heads) as
// the mma's B operand and streams tiles of 16 tokens through shared memory of its own, so no warp waits for another one.
// The launch depends on shapes only: every warp has one tile that is its own whatever the lengths are, so that its copy
// starts before the lengths are known; all tiles beyond those are one sequence that is cut into equal parts, a part a
// warp. So rows of unlike length load the GPU evenly.
#include <cuda_runtime.h>

#include "indexer_logits.h"
#include "ptx.cuh"

// Named, not anonymous: see sparse_mla_decode.cu.
namespace indexer_logits {

constexpr int kHeads = 64, kDim = 128, kPage = 64;
constexpr int kTile = 16;  // tokens: the M of the mma
constexpr int kTilesPerPage = kPage / kTile;
constexpr int kScaleOffset = kPage * kDim;  // bytes in a page
constexpr int kWarps = 8, kThreads = kWarps * 32;
constexpr int kStages = 4;  // tiles of a warp in flight
constexpr int kMaxRows = 2048;
constexpr int kHeadBlocks = kHeads / 8;
constexpr float kInf = __builtin_huge_valf();

struct Shared {
  static constexpr int kWarpSums = kMaxRows * 4;  // after the ends of the rows
  static constexpr int kStageBase = kWarpSums + kWarps * 4;
  static constexpr int kTileBytes = kTile * kDim, kScaleBytes = kTile * 4;
  static constexpr int kStage = kTileBytes + kScaleBytes;
  static constexpr int kBytes = kStageBase + kWarps * kStages * kStage;
  static_assert(kStageBase % 16 == 0 && kStage % 16 == 0, "cp.async moves 16 bytes");
  static_assert(kBytes <= 99 * 1024, "a block of sm_120 has 99 KB");
};

__device__ __forceinline__ uint32_t lane_id() { return threadIdx.x & 31; }

// The e4m3 mma where the hardware has one (sm_120). sm_90 has none outside wgmma: its assembler would convert both
// operands to f16 before every mma, so the query is converted once here. Products of e4m3 values are exact either way.
// A lane holds words of four consecutive values; which of the mma's K they stand for is the same for both operands, and
// does not matter to their product.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 1000
struct Query {
  uint32_t half[8][kHeadBlocks][2];  // of words 0..3 of chunks `quad` and `quad + 4`
  __device__ __forceinline__ void set(int word, int n, uint32_t e4m3) {
    ptx::e4m3x4_to_f16x4(e4m3, half[word][n][0], half[word][n][1]);
  }
  __device__ __forceinline__ void dot(float (&d)[kHeadBlocks][4], const uint32_t (&low)[8],
                                      const uint32_t (&high)[8]) const {
#pragma unroll
    for (int word = 0; word < 8; ++word) {
      uint32_t a[4];
      ptx::e4m3x4_to_f16x4(low[word], a[0], a[2]);
      ptx::e4m3x4_to_f16x4(high[word], a[1], a[3]);
#pragma unroll
      for (int n = 0; n < kHeadBlocks; ++n)
        ptx::mma_f16(d[n], a[0], a[1], a[2], a[3], half[word][n][0], half[word][n][1]);
    }
  }
};
#else
struct Query {
  uint32_t words[8][kHeadBlocks];
  __device__ __forceinline__ void set(int word, int n, uint32_t e4m3) { words[word][n] = e4m3; }
  __device__ __forceinline__ void dot(float (&d)[kHeadBlocks][4], const uint32_t (&low)[8],
                                      const uint32_t (&high)[8]) const {
#pragma unroll
    for (int word = 0; word < 8; word += 2)
#pragma unroll
      for (int n = 0; n < kHeadBlocks; ++n)
        ptx::mma_e4m3(d[n], low[word], high[word], low[word + 1], high[word + 1], words[word][n], words[word + 1][n]);
  }
};
#endif

__device__ __forceinline__ int length_of(const IndexerLogitsParams& p, int row) {
  return max(0, min(__ldg(p.lengths + row), min(p.width, p.table_width * kPage)));
}

// The tiles of all rows but for the first `own` of each, which belong to warps whatever the lengths are.
struct Sequence {
  const uint32_t* ends;  // tiles of rows 0..i
  int rows, own;

  __device__ static Sequence of(const IndexerLogitsParams& p, int own, uint32_t* ends, uint32_t* warp_sums) {
    uint32_t before = 0;  // tiles of the rows before these
#pragma unroll 1
    for (int first = 0; first < p.rows; first += kThreads) {
      const int row = first + threadIdx.x;
      uint32_t sum = row < p.rows ? max(0, (length_of(p, row) + kTile - 1) / kTile - own) : 0;
#pragma unroll
      for (int d = 1; d < 32; d *= 2) {
        const uint32_t other = __shfl_up_sync(~0u, sum, d);
        if (lane_id() >= d) sum += other;
      }
      if (lane_id() == 31) warp_sums[threadIdx.x / 32] = sum;
      __syncthreads();
      uint32_t all = 0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        if (w == threadIdx.x / 32) sum += before + all;
        all += warp_sums[w];
      }
      if (row < p.rows) ends[row] = sum;
      before += all;
      __syncthreads();
    }
    return {ends, p.rows, own};
  }
};

// A tile of a row.
struct Place {
  int row, tile, end;  // `end`: of the row

  // The tile at a place in the sequence.
  __device__ static Place at(const Sequence& s, uint32_t at) {
    int low = 0, high = s.rows - 1;  // the first row that ends after `at`
    while (low < high) {
      const int middle = (low + high) / 2;
      if (s.ends[middle] > at)
        high = middle;
      else
        low = middle + 1;
    }
    const uint32_t begin = low ? s.ends[low - 1] : 0;
    return {low, int(s.own + at - begin), int(s.own + s.ends[low] - begin)};
  }
  // The next tile of the sequence, which must exist. Returns whether it is of another row.
  __device__ __forceinline__ bool advance(const Sequence& s) {
    if (++tile < end) return false;
    uint32_t tiles;
    do {
      ++row;
      tiles = s.ends[row] - s.ends[row - 1];
    } while (tiles == 0);
    tile = s.own, end = s.own + tiles;
    return true;
  }
};

// Brings what the first tiles need into the L2 cache while the lengths, which say what that is, are still on their way:
// the page tables' first lines and the queries.
__device__ void prefetch(const IndexerLogitsParams& p) {
  constexpr int kTableLines = 4096, kLine = 128;
  int at = blockIdx.x * kThreads + threadIdx.x;
  const char* from = nullptr;
  if (at < kTableLines) {
    const int line = at / p.rows, row = at - line * p.rows;
    if (line * kLine < p.table_width * 4)
      from = reinterpret_cast<const char*>(p.page_table + row * p.page_table_stride) + line * kLine;
  } else {
    constexpr int kLines = kHeads * kDim / kLine;
    at -= kTableLines;
    if (at / kLines < p.rows)
      from = static_cast<const char*>(p.q) + at / kLines * p.q_stride + at % kLines * kLine;
  }
  if (from) ptx::prefetch_l2(from);
}

// Starts copies of tiles into the stages of a warp. Neighbouring tokens have the halves of their 128 bytes swapped: then
// the lanes that read together meet all banks.
class Fetcher {
 public:
  // In place of a scale: no such page. A NaN that no arithmetic makes.
  static constexpr uint32_t kNoPage = 0xffedcba9;

  __device__ explicit Fetcher(const IndexerLogitsParams& params)
      : p(params),
        value_(lane_id() * 16),
        swizzled_(lane_id() / 8 * kDim + (lane_id() % 8 ^ (lane_id() / 8 & 1) * 4) * 16) {}

  __device__ __forceinline__ int page_of(int row, int index) const {
    return index < p.table_width ? __ldg(p.page_table + row * p.page_table_stride + index) : -1;
  }
  __device__ void start(const Sequence& s, uint32_t at, int count) {
    left_ = count;
    if (count > 0) place_ = Place::at(s, at), read_pages();
  }
  // The next tile of the sequence, if one is left. No lane reads the stage any more.
  __device__ __forceinline__ void next(const Sequence& s, uint32_t stage) {
    if (left_ > 0) {
      const int index = place_.tile / kTilesPerPage;
      if (index - first_page_ >= 32) read_pages();
      copy(__shfl_sync(~0u, page_, index - first_page_), place_.tile, stage);
      if (--left_ > 0 && place_.advance(s)) read_pages();
    }
    ptx::cp_async_commit();
  }
  __device__ __forceinline__ void copy(int page, int tile, uint32_t stage) const {
    const bool valid = uint32_t(page) < uint32_t(p.pages);
    const int in_page = tile % kTilesPerPage;
    const auto* from = static_cast<const uint8_t*>(p.cache) + (valid ? page * p.page_stride : 0);
    const auto* values = from + in_page * Shared::kTileBytes + value_;
#pragma unroll
    for (int i = 0; i < Shared::kTileBytes; i += 32 * 16)  // four tokens, so that the swizzle stays the same
      ptx::cp_async<16>(stage + swizzled_ + i, values + i, valid);
    if (lane_id() < Shared::kScaleBytes / 16) {
      const uint32_t to = stage + Shared::kTileBytes + lane_id() * 16;
      if (valid)
        ptx::cp_async<16>(to, from + kScaleOffset + in_page * Shared::kScaleBytes + lane_id() * 16, true);
      else
        ptx::store_shared_x4(to, kNoPage);
    }
  }

 private:
  // Page numbers from the place on, one a lane.
  __device__ __forceinline__ void read_pages() {
    first_page_ = place_.tile / kTilesPerPage;
    page_ = page_of(place_.row, first_page_ + lane_id());
  }

  const IndexerLogitsParams& p;
  int value_, swizzled_;  // bytes
  Place place_;
  int left_ = 0, first_page_ = 0, page_ = -1;
};

__global__ void __launch_bounds__(kThreads, 1) indexer_logits_kernel(const __grid_constant__ IndexerLogitsParams p) {
  extern __shared__ __align__(16) uint8_t smem[];
  const int warp = threadIdx.x / 32, lane = lane_id(), quad = lane & 3, octet = lane / 4;
  const uint8_t* stages = smem + Shared::kStageBase + warp * kStages * Shared::kStage;
  const uint32_t first_stage = __cvta_generic_to_shared(stages);

  const uint32_t parts = gridDim.x * kWarps, part = blockIdx.x * kWarps + warp;
  const uint32_t own = parts / p.rows;
  const bool has_own = part < own * p.rows;
  Fetcher fetcher(p);
  Place place{0, 0, 0};
  if (has_own) {
    place.row = part / own, place.tile = part - place.row * own;
    const int page = fetcher.page_of(place.row, place.tile / kTilesPerPage);
    prefetch(p);
    fetcher.copy(page, place.tile, first_stage);
    ptx::cp_async_commit();
  }
  const Sequence sequence = Sequence::of(p, own, reinterpret_cast<uint32_t*>(smem),
                                         reinterpret_cast<uint32_t*>(smem + Shared::kWarpSums));
  const uint32_t total = sequence.ends[p.rows - 1], share = total / parts, rest = total - share * parts;
  const uint32_t begin = part * share + min(part, rest), count = share + (part < rest);
  if (count == 0 && !has_own) return;
  fetcher.start(sequence, begin, count);
#pragma unroll 1
  for (int i = has_own; i < kStages; ++i) fetcher.next(sequence, first_stage + i * Shared::kStage);
  if (!has_own) place = Place::at(sequence, begin);

  Query query;
  float weight[kHeadBlocks][2];
  int length, query_row = -1, slot = 0;
#pragma unroll 1
  for (uint32_t left = count + has_own;;) {
    if (place.row != query_row) {
      query_row = place.row;
      const auto* q = static_cast<const uint8_t*>(p.q) + query_row * p.q_stride;
#pragma unroll
      for (int n = 0; n < kHeadBlocks; ++n) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const uint4 v = __ldg(reinterpret_cast<const uint4*>(q + (n * 8 + octet) * kDim + (quad + half * 4) * 16));
          query.set(half * 4, n, v.x), query.set(half * 4 + 1, n, v.y);
          query.set(half * 4 + 2, n, v.z), query.set(half * 4 + 3, n, v.w);
        }
        const float* w = p.weights + query_row * p.weights_stride + n * 8 + quad * 2;
        weight[n][0] = __ldg(w), weight[n][1] = __ldg(w + 1);
      }
      length = length_of(p, query_row);
    }
    // Lanes 0 and 1 of each quad write a token each.
    const int token = octet + (quad & 1) * 8, column = place.tile * kTile + token;
    const uint8_t* stage = stages + slot * Shared::kStage;
    ptx::cp_async_wait<kStages - 1>();
    __syncwarp();
    uint32_t low[8], high[8];  // of tokens `octet` and `octet + 8`
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint8_t* from = stage + octet * kDim + ((quad + half * 4) ^ (octet & 1) * 4) * 16;
      const uint4 a = *reinterpret_cast<const uint4*>(from), b = *reinterpret_cast<const uint4*>(from + 8 * kDim);
      low[half * 4] = a.x, low[half * 4 + 1] = a.y, low[half * 4 + 2] = a.z, low[half * 4 + 3] = a.w;
      high[half * 4] = b.x, high[half * 4 + 1] = b.y, high[half * 4 + 2] = b.z, high[half * 4 + 3] = b.w;
    }
    const float scale = reinterpret_cast<const float*>(stage + Shared::kTileBytes)[token];
    __syncwarp();
    fetcher.next(sequence, first_stage + slot * Shared::kStage);
    if (++slot == kStages) slot = 0;

    if (place.tile * kTile < length) {  // else: a tile of this warp's own that the row does not have
      float d[kHeadBlocks][4] = {};
      query.dot(d, low, high);
      float sum[2][2] = {};
#pragma unroll
      for (int n = 0; n < kHeadBlocks; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[i / 2][i % 2] += ptx::max_nan(d[n][i], 0.f) * weight[n][i % 2];
      float first = sum[0][0] + sum[0][1], second = sum[1][0] + sum[1][1];
#pragma unroll
      for (int i = 1; i < 4; i *= 2) {
        first += __shfl_xor_sync(~0u, first, i);
        second += __shfl_xor_sync(~0u, second, i);
      }
      if (quad < 2 && column < length) {
        const float value = __float_as_uint(scale) == Fetcher::kNoPage ? -kInf : (quad ? second : first) * scale;
        p.logits[place.row * p.logits_stride + column] = value;
      }
    }
    if (--left == 0) break;
    if (left == count)
      place = Place::at(sequence, begin);
    else
      place.advance(sequence);
  }
  ptx::cp_async_wait<0>();
}

}  // namespace indexer_logits

int appliance_indexer_logits_block(int* threads, int* shared_bytes) {
  using namespace indexer_logits;
  *threads = kThreads, *shared_bytes = Shared::kBytes;
  return cudaSuccess;
}

int appliance_indexer_logits_prepare(int* blocks) {
  using namespace indexer_logits;
  int device, multiprocessors, per_multiprocessor;
  cudaError_t error =
      cudaFuncSetAttribute(indexer_logits_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Shared::kBytes);
  if (error == cudaSuccess) error = cudaGetDevice(&device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess)
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, indexer_logits_kernel, kThreads,
                                                          Shared::kBytes);
  if (error == cudaSuccess) *blocks = multiprocessors * per_multiprocessor;
  return error;
}

int appliance_indexer_logits(const IndexerLogitsParams* params, int blocks, void* stream) {
  using namespace indexer_logits;
  if (params->rows < 1 || params->rows > kMaxRows || blocks < 1) return cudaErrorInvalidValue;
  indexer_logits_kernel<<<blocks, kThreads, Shared::kBytes, static_cast<cudaStream_t>(stream)>>>(*params);
  return cudaGetLastError();
}
