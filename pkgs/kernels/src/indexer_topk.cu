// The best `topk` columns of each row of scores, best first, and the tokens that they stand for.
//
// Scores and columns form one 56-bit key: the score's bits in the order of the floats, then the column, inverted. Keys
// are all different, so what is chosen, and in which order, does not depend on how threads run: equal scores go by
// column, the first column first. The blocks of a cluster share a row. They count keys by their upper bits until few
// enough are left above a bound (twelve bits do, but for rows of nearly equal scores; more bits are counted for those),
// send the keys above it to the first block, and that sorts them. Nothing is kept in global memory.
#include <cuda_runtime.h>

#include "indexer_topk.h"
#include "ptx.cuh"

// Named, not anonymous: see sparse_mla_decode.cu.
namespace indexer_topk {

constexpr int kThreads = 512, kWarps = kThreads / 32;
constexpr int kMaxTopk = 2048, kMaxCluster = 16;
constexpr int kColumnBits = 24, kKeyBits = 32 + kColumnBits;
constexpr uint32_t kColumnMask = (1u << kColumnBits) - 1;
constexpr int kFirstBits = 12, kNextBits = 11;  // 12 + 4 * 11 = 56
constexpr int kBins = 1 << kFirstBits, kBinsOfThread = kBins / kThreads;
constexpr int kCapacity = 4096;        // keys that are sorted
constexpr int kSample = 16384;         // columns of a block that are counted without knowing a bound
constexpr int kColumnsOfBlock = 8192;  // fewer are not worth another block

struct alignas(16) Shared {
  uint64_t keys[kCapacity];
  uint32_t bins[kBins];
  uint32_t warp_sums[kWarps];
  uint64_t prefix;    // of the keys that are still counted: their bits above `shift`
  uint32_t above;     // keys above all of those
  uint32_t within;    // keys with that prefix
  uint32_t received;  // keys that have come here
  uint32_t bound;     // the lowest bin that this block has to count
};

__device__ __forceinline__ uint32_t lane_id() { return threadIdx.x & 31; }

// Bits whose unsigned order is that of the floats; -0 equals 0, every NaN stands above infinity (as in torch.topk).
__device__ __forceinline__ uint32_t ordered(float x) {
  const uint32_t bits = __float_as_uint(x + 0.f);
  if (x != x) return 0xffffffffu;
  return bits ^ (uint32_t(int32_t(bits) >> 31) | 0x80000000u);
}
__device__ __forceinline__ uint64_t key_of(uint32_t score, int column) {
  return uint64_t(score) << kColumnBits | (kColumnMask - column);
}

// Calls take(column, score) for the columns begin..end-1 of a row, shared out among the threads of the block.
template <class Take>
__device__ __forceinline__ void for_each(const float* row, int begin, int end, Take&& take) {
  const int skew = (reinterpret_cast<uintptr_t>(row + begin) & 15) / 4;
  const int aligned = min(end, begin + (4 - skew) % 4), vectors = (end - aligned) / 4;
  if (int(threadIdx.x) < aligned - begin) take(begin + threadIdx.x, __ldg(row + begin + threadIdx.x));
  const auto* from = reinterpret_cast<const float4*>(row + aligned);
  constexpr int kAtOnce = 4;
  int i = threadIdx.x;
#pragma unroll 1
  for (; i + (kAtOnce - 1) * kThreads < vectors; i += kAtOnce * kThreads) {
    float4 v[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) v[u] = __ldg(from + i + u * kThreads);
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const int column = aligned + (i + u * kThreads) * 4;
      take(column, v[u].x), take(column + 1, v[u].y), take(column + 2, v[u].z), take(column + 3, v[u].w);
    }
  }
#pragma unroll 1
  for (; i < vectors; i += kThreads) {
    const float4 v = __ldg(from + i);
    const int column = aligned + i * 4;
    take(column, v.x), take(column + 1, v.y), take(column + 2, v.z), take(column + 3, v.w);
  }
  const int tail = aligned + vectors * 4 + threadIdx.x;
  if (tail < end) take(tail, __ldg(row + tail));
}

// Sum over the threads after this one, and over all.
__device__ __forceinline__ uint32_t sum_after(Shared& s, uint32_t value, uint32_t& all) {
  uint32_t sum = value;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const uint32_t other = __shfl_down_sync(~0u, sum, d);
    if (lane_id() + d < 32) sum += other;
  }
  if (lane_id() == 0) s.warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();
  uint32_t after = 0;
  all = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    const uint32_t of_warp = s.warp_sums[w];
    all += of_warp;
    if (w > int(threadIdx.x / 32)) after += of_warp;
  }
  __syncthreads();
  return sum - value + after;
}

// Calls found(bin, keys in higher bins, keys in this bin) in the one thread whose bin holds the `wanted`-th key from
// above, if there are so many.
template <class Found>
__device__ __forceinline__ void find_bin(Shared& s, uint32_t wanted, Found&& found) {
  const int first = threadIdx.x * kBinsOfThread;
  uint32_t counts[kBinsOfThread], sum = 0, all;
#pragma unroll
  for (int i = 0; i < kBinsOfThread; ++i) sum += counts[i] = s.bins[first + i];
  uint32_t above = sum_after(s, sum, all);
#pragma unroll
  for (int i = kBinsOfThread - 1; i >= 0; --i) {
    if (above < wanted && wanted <= above + counts[i]) found(first + i, above, counts[i]);
    above += counts[i];
  }
}

__device__ __forceinline__ void clear_bins(Shared& s) {
#pragma unroll
  for (int i = 0; i < kBinsOfThread; ++i) s.bins[threadIdx.x + i * kThreads] = 0;
}

// Best first. Steps within 64 keys stay within a warp.
__device__ __forceinline__ void sort(uint64_t* keys, int size) {
  for (int length = 2; length <= size; length *= 2)
    for (int distance = length / 2; distance > 0; distance /= 2) {
      for (int pair = threadIdx.x; pair < size / 2; pair += kThreads) {
        const int low = 2 * pair - (pair & distance - 1), high = low + distance;
        const uint64_t a = keys[low], b = keys[high];
        if ((a < b) == ((low & length) == 0)) keys[low] = b, keys[high] = a;
      }
      if (distance > 32 || (distance == 1 && length > 32))
        __syncthreads();
      else
        __syncwarp();
    }
}

__global__ void __launch_bounds__(kThreads, 2) indexer_topk_kernel(const __grid_constant__ IndexerTopkParams p) {
  extern __shared__ __align__(16) uint8_t smem[];
  Shared& s = *reinterpret_cast<Shared*>(smem);
  const int rank = ptx::cluster_rank(), row = blockIdx.x / p.cluster, topk = p.topk;
  const int length = max(0, min(__ldg(p.lengths + row), p.width));
  auto write = [&](int i, int position) {
    if (p.positions) p.positions[row * p.positions_stride + i] = position;
    if (!p.tokens) return;
    const int index = position >> p.log2_page_size;
    int token = -1;
    if (position >= 0 && index < p.table_width) {
      const int page = __ldg(p.page_table + row * p.page_table_stride + index);
      if (page >= 0) token = (page << p.log2_page_size) + (position & (1 << p.log2_page_size) - 1);
    }
    p.tokens[row * p.tokens_stride + i] = token;
  };
  if (length <= topk) {
    if (rank == 0)
      for (int i = threadIdx.x; i < topk; i += kThreads) write(i, i < length ? i : -1);
    return;
  }

  // A short row is not worth all blocks. Those that leave count as having come to every barrier, and nobody reads them.
  const int ranks = min(p.cluster, (length + kColumnsOfBlock - 1) / kColumnsOfBlock);
  if (rank >= ranks) return;
  auto sync_blocks = [&] {
    if (ranks > 1)
      ptx::cluster_arrive(), ptx::cluster_wait();
    else
      __syncthreads();
  };
  const int share = ((length + ranks - 1) / ranks + 3) / 4 * 4;
  const int begin = min(length, rank * share), end = min(length, begin + share);
  const float* scores = p.scores + row * p.scores_stride;

  clear_bins(s);
  if (threadIdx.x == 0) s.prefix = 0, s.above = 0, s.within = 0, s.received = 0, s.bound = 0;
  if (ranks > 1)
    sync_blocks();  // the first block may be written to from here on
  else
    __syncthreads();

  // Count by the first bits. What is below the topk-th key of a part is below that of the row: a bound from the first
  // columns saves most of the rest from being counted.
  auto count = [&](int from, int to, uint32_t bound) {
    for_each(scores, from, to, [&](int, float x) {
      const uint32_t bin = ordered(x) >> 32 - kFirstBits;
      if (bin >= bound) atomicAdd(&s.bins[bin], 1);
    });
  };
  const int sampled = min(end, begin + kSample);
  count(begin, sampled, 0);
  if (sampled < end) {
    __syncthreads();
    find_bin(s, topk, [&](int bin, uint32_t, uint32_t) { s.bound = bin; });
    __syncthreads();
    count(sampled, end, s.bound);
  }
  __syncthreads();

  const uint32_t first_s = ptx::map_to_rank(__cvta_generic_to_shared(&s), 0);
  auto in_first = [&](const void* member) {
    return first_s + uint32_t(reinterpret_cast<const uint8_t*>(member) - smem);
  };
  auto send_bins = [&] {
    if (rank > 0)
#pragma unroll
      for (int i = 0; i < kBinsOfThread; ++i) {
        const int bin = threadIdx.x + i * kThreads;
        if (const uint32_t n = s.bins[bin]) ptx::cluster_add(in_first(&s.bins[bin]), n);
      }
  };
  send_bins();
  sync_blocks();

  int shift = kKeyBits - kFirstBits, bits = kFirstBits;
  uint64_t prefix;
  uint32_t kept;  // keys at or above the bound
  for (;;) {
    if (rank == 0) {
      const uint32_t above = s.above;
      __syncthreads();
      find_bin(s, topk - above, [&](int bin, uint32_t higher, uint32_t within) {
        s.prefix = s.prefix << bits | bin, s.above = above + higher, s.within = within;
      });
    }
    sync_blocks();
    prefix = ptx::cluster_load_u64(in_first(&s.prefix));
    kept = ptx::cluster_load(in_first(&s.above)) + ptx::cluster_load(in_first(&s.within));
    if (kept <= kCapacity) break;
    // Too many equal ones: the next bits of those.
    clear_bins(s);
    sync_blocks();  // also: what was read above is not written before
    bits = kNextBits, shift -= bits;
    for_each(scores, begin, end, [&](int column, float x) {
      const uint64_t key = key_of(ordered(x), column);
      if (key >> shift + bits == prefix) atomicAdd(&s.bins[key >> shift & (1 << bits) - 1], 1);
    });
    __syncthreads();
    send_bins();
    sync_blocks();
  }

  const uint64_t bound = prefix << shift;
  const uint32_t bound_score = bound >> kColumnBits;
  for_each(scores, begin, end, [&](int column, float x) {
    const uint32_t score = ordered(x);
    if (score < bound_score) return;
    const uint64_t key = key_of(score, column);
    if (key < bound) return;
    const uint32_t at = ptx::cluster_add_return(in_first(&s.received), 1);
    ptx::cluster_store_u64(in_first(&s.keys[at]), key);
  });
  sync_blocks();
  if (rank > 0) return;

  int size = 64;
  while (size < int(kept)) size *= 2;
  for (int i = kept + threadIdx.x; i < size; i += kThreads) s.keys[i] = 0;
  __syncthreads();
  sort(s.keys, size);
  for (int i = threadIdx.x; i < topk; i += kThreads) write(i, kColumnMask - uint32_t(s.keys[i] & kColumnMask));
}

cudaLaunchConfig_t launch_config(int rows, int cluster, cudaLaunchAttribute* attribute, cudaStream_t stream) {
  attribute->id = cudaLaunchAttributeClusterDimension;
  attribute->val.clusterDim = {unsigned(cluster), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(unsigned(rows) * cluster);
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = sizeof(Shared);
  config.stream = stream;
  config.attrs = attribute;
  config.numAttrs = cluster > 1;
  return config;
}

}  // namespace indexer_topk

int appliance_indexer_topk_block(int* threads, int* shared_bytes) {
  using namespace indexer_topk;
  *threads = kThreads, *shared_bytes = sizeof(Shared);
  return cudaSuccess;
}

int appliance_indexer_topk_prepare(int* blocks, int* cluster) {
  using namespace indexer_topk;
  int device, multiprocessors, per_multiprocessor;
  cudaError_t error =
      cudaFuncSetAttribute(indexer_topk_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(sizeof(Shared)));
  if (error == cudaSuccess)
    error = cudaFuncSetAttribute(indexer_topk_kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  if (error == cudaSuccess) error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess)
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, indexer_topk_kernel, kThreads,
                                                          sizeof(Shared));
  if (error != cudaSuccess) return error;
  *blocks = multiprocessors * per_multiprocessor, *cluster = 1;
  for (int size = 2; size <= kMaxCluster; size *= 2) {
    cudaLaunchAttribute attribute;
    const cudaLaunchConfig_t config = launch_config(1, size, &attribute, nullptr);
    int clusters = 0;
    if (cudaOccupancyMaxActiveClusters(&clusters, indexer_topk_kernel, &config) == cudaSuccess && clusters > 0)
      *cluster = size;
  }
  cudaGetLastError();  // a cluster size that the device does not know is no error of the caller
  return cudaSuccess;
}

int appliance_indexer_topk(const IndexerTopkParams* params, void* stream) {
  using namespace indexer_topk;
  if (params->rows < 1 || params->topk < 1 || params->topk > kMaxTopk) return cudaErrorInvalidValue;
  cudaLaunchAttribute attribute;
  const cudaLaunchConfig_t config =
      launch_config(params->rows, params->cluster, &attribute, static_cast<cudaStream_t>(stream));
  return cudaLaunchKernelEx(&config, indexer_topk_kernel, *params);
}
