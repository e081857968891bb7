// Logits of DeepSeek's sparse-attention indexer (DeepSeek-V3.2, "lightning indexer"), one query token a row:
// logit[t] = scale[t] * sum over 64 heads of weight[h] * max(0, q[h] . k[t]), 128 values, e4m3, paged keys.
//
// The keys are read once and everything else stays in registers: a warp keeps the whole query of its row (64 heads) as
// the mma's B operand and streams tiles of 16 tokens through shared memory of its own, so no warp ever waits for
// another one. The tiles of all rows are one sequence that is cut into equal parts, a part a warp: rows of unlike
// length load the GPU evenly, and the launch depends on shapes only. A page is 8,448 contiguous bytes.
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
constexpr int kStages = 5;  // tiles of a warp in flight, one of them being used
constexpr int kMaxRows = 2048;
constexpr int kHeadBlocks = kHeads / 8;
constexpr float kInf = __builtin_huge_valf();

struct Shared {
  static constexpr int kWarpSums = kMaxRows * 4;  // after the ends of the rows
  static constexpr int kStageBase = kWarpSums + kWarps * 4;
  static constexpr int kTileBytes = kTile * kDim;
  static constexpr int kStage = kTileBytes + kTile * 4;  // values, scales
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

// A place in the sequence of all rows' tiles.
struct Place {
  int row, tile, end;  // tile and end within the row

  __device__ void start(const uint32_t* ends, int rows, uint32_t at) {
    int low = 0, high = rows - 1;  // the first row that ends after `at`
    while (low < high) {
      const int middle = (low + high) / 2;
      if (ends[middle] > at)
        high = middle;
      else
        low = middle + 1;
    }
    row = low;
    const uint32_t begin = row ? ends[row - 1] : 0;
    tile = at - begin, end = ends[row] - begin;
  }
  // The next tile, which must exist. Returns whether it is of another row.
  __device__ bool advance(const uint32_t* ends) {
    if (++tile < end) return false;
    tile = 0;
    do {
      ++row;
      end = ends[row] - ends[row - 1];
    } while (end == 0);
    return true;
  }
};

__device__ __forceinline__ int length_of(const IndexerLogitsParams& p, int row) {
  return max(0, min(__ldg(p.lengths + row), min(p.width, p.table_width * kPage)));
}

// ends[i] = tiles of rows 0..i.
__device__ void sum_up_tiles(const IndexerLogitsParams& p, uint32_t* ends, uint32_t* warp_sums) {
  uint32_t before = 0;  // tiles of the rows before these
#pragma unroll 1
  for (int first = 0; first < p.rows; first += kThreads) {
    const int row = first + threadIdx.x;
    uint32_t sum = row < p.rows ? (length_of(p, row) + kTile - 1) / kTile : 0;
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
}

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

// Starts copies of tiles, in the order of the sequence.
class Fetcher {
 public:
  // In place of a scale: no such page. A NaN that no arithmetic makes.
  static constexpr uint32_t kNoPage = 0xffedcba9;

  __device__ Fetcher(const IndexerLogitsParams& params, const uint32_t* ends, uint32_t stages)
      : p(params),
        ends_(ends),
        value_(lane_id() * 16),
        swizzled_(stages + lane_id() / 8 * kDim + (lane_id() % 8 ^ (lane_id() / 8 & 1) * 4) * 16),
        scale_(stages + Shared::kTileBytes + lane_id() * 16) {}

  __device__ void start(uint32_t at, int count) {
    left_ = count;
    if (count > 0) place_.start(ends_, p.rows, at), read_pages();
  }

  // One group of copies, empty after the last tile.
  __device__ void next(int slot) {
    if (left_ > 0) {
      const int page_index = place_.tile / kTilesPerPage;
      if (page_index - first_page_ >= 32) read_pages();
      const int page = __shfl_sync(~0u, page_, page_index - first_page_);
      copy(page, place_.tile % kTilesPerPage, slot * Shared::kStage);
      if (--left_ > 0 && place_.advance(ends_)) read_pages();
    }
    ptx::cp_async_commit();
  }

 private:
  // Page numbers from the place on, one a lane.
  __device__ void read_pages() {
    first_page_ = place_.tile / kTilesPerPage;
    const int index = first_page_ + lane_id();
    page_ = index < p.table_width ? __ldg(p.page_table + place_.row * p.page_table_stride + index) : -1;
  }
  // Neighbouring tokens have the halves of their 128 bytes swapped: then the lanes that read together meet all banks.
  __device__ __forceinline__ void copy(int page, int tile, uint32_t stage) const {
    const bool valid = uint32_t(page) < uint32_t(p.pages);
    const auto* from = static_cast<const uint8_t*>(p.cache) + (valid ? page * p.page_stride : 0);
    const auto* values = from + tile * Shared::kTileBytes + value_;
#pragma unroll
    for (int i = 0; i < Shared::kTileBytes; i += 32 * 16)  // four tokens, so that the swizzle stays the same
      ptx::cp_async<16>(stage + swizzled_ + i, values + i, valid);
    if (lane_id() < kTile / 4) {
      if (valid)
        ptx::cp_async<16>(stage + scale_, from + kScaleOffset + tile * kTile * 4 + value_, true);
      else
        ptx::store_shared_x4(stage + scale_, kNoPage);
    }
  }

  const IndexerLogitsParams& p;
  const uint32_t* ends_;
  int value_;  // bytes from a tile's start
  uint32_t swizzled_, scale_;
  Place place_;
  int left_ = 0, first_page_ = 0, page_ = -1;
};

__global__ void __launch_bounds__(kThreads, 1) indexer_logits_kernel(const __grid_constant__ IndexerLogitsParams p) {
  extern __shared__ __align__(16) uint8_t smem[];
  auto* ends = reinterpret_cast<uint32_t*>(smem);
  const int warp = threadIdx.x / 32, lane = lane_id(), quad = lane & 3, octet = lane / 4;
  prefetch(p);
  sum_up_tiles(p, ends, reinterpret_cast<uint32_t*>(smem + Shared::kWarpSums));

  const uint32_t total = ends[p.rows - 1], parts = gridDim.x * kWarps, part = blockIdx.x * kWarps + warp;
  const uint32_t share = total / parts, rest = total - share * parts;
  const uint32_t begin = part * share + min(part, rest), end = begin + share + (part < rest);
  if (begin == end) return;

  const uint8_t* stages = smem + Shared::kStageBase + warp * kStages * Shared::kStage;
  Fetcher fetcher(p, ends, __cvta_generic_to_shared(stages));
  fetcher.start(begin, end - begin);
#pragma unroll 1
  for (int i = 0; i < kStages - 1; ++i) fetcher.next(i);

  Place place;
  place.start(ends, p.rows, begin);
  Query query;
  float weight[kHeadBlocks][2];
  int length;
  auto read_row = [&] {
    const auto* q = static_cast<const uint8_t*>(p.q) + place.row * p.q_stride;
#pragma unroll
    for (int n = 0; n < kHeadBlocks; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint4 v = __ldg(reinterpret_cast<const uint4*>(q + (n * 8 + octet) * kDim + (quad + half * 4) * 16));
        query.set(half * 4, n, v.x), query.set(half * 4 + 1, n, v.y);
        query.set(half * 4 + 2, n, v.z), query.set(half * 4 + 3, n, v.w);
      }
      const float* w = p.weights + place.row * p.weights_stride + n * 8 + quad * 2;
      weight[n][0] = __ldg(w), weight[n][1] = __ldg(w + 1);
    }
    length = length_of(p, place.row);
  };
  read_row();

  int slot = 0, free_slot = kStages - 1;
  for (uint32_t left = end - begin;;) {
    ptx::cp_async_wait<kStages - 2>();
    __syncwarp();
    fetcher.next(free_slot);  // read by all lanes before the barrier
    const uint8_t* stage = stages + slot * Shared::kStage;
    free_slot = slot;
    slot = slot + 1 == kStages ? 0 : slot + 1;

    uint32_t low[8], high[8];  // of tokens `octet` and `octet + 8`
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int chunk = (quad + half * 4) ^ (octet & 1) * 4;
      const uint4 a = *reinterpret_cast<const uint4*>(stage + octet * kDim + chunk * 16);
      const uint4 b = *reinterpret_cast<const uint4*>(stage + (octet + 8) * kDim + chunk * 16);
      low[half * 4] = a.x, low[half * 4 + 1] = a.y, low[half * 4 + 2] = a.z, low[half * 4 + 3] = a.w;
      high[half * 4] = b.x, high[half * 4 + 1] = b.y, high[half * 4 + 2] = b.z, high[half * 4 + 3] = b.w;
    }
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
    // Lanes 0 and 1 of each quad write a token each.
    const int token = octet + quad * 8, column = place.tile * kTile + token;
    if (quad < 2 && column < length) {
      const float scale = reinterpret_cast<const float*>(stage + Shared::kTileBytes)[token];
      const float value = __float_as_uint(scale) == Fetcher::kNoPage ? -kInf : (quad ? second : first) * scale;
      p.logits[place.row * p.logits_stride + column] = value;
    }
    if (--left == 0) break;
    if (place.advance(ends)) read_row();
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
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
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
