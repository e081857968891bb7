// The C interface of the library. Python mirrors these structs with ctypes: change both together (the version tells).
#pragma once
#include <cstdint>

#pragma GCC visibility push(default)
extern "C" {

struct SparseMlaSource {   // one paged cache and the list of tokens to read from it
  const void* cache;       // first page; 16-byte aligned, never null
  const int32_t* indices;  // [batch, width] flat token numbers; outside 0..capacity-1 means: no token
  int64_t indices_stride;  // elements between rows
  const int32_t* lengths;  // [batch] valid prefix of a row, or null: all of it
  int32_t width;           // columns of `indices`; 0: source unused
  int32_t capacity;        // tokens in the cache
  int32_t log2_page_size;
  uint32_t page_stride16;  // units of 16 bytes between pages; the whole cache spans less than 2^32 units
};

struct SparseMlaDecodeParams {
  const void* q;           // [batch, heads, 512] bf16, last dimension dense; 16-byte aligned rows
  int64_t q_batch_stride;  // elements
  int64_t q_head_stride;   // elements
  void* out;               // [batch, heads, 512] bf16, dense
  float* lse;              // [batch, heads], natural logarithm, without the sink
  const float* sink;       // [heads] or null
  float* partial;          // [batch, splits, heads, 512] scratch when splits > 1
  float* partial_ml;       // [batch, splits, heads, 2] scratch when splits > 1
  uint32_t*
      counters;  // [batch * heads / heads_per_block * cluster], zero before the first launch; each launch leaves zeros
  SparseMlaSource source[2];  // window cache, extra cache
  float softmax_scale;
  int32_t batch;
  int32_t heads;    // 8, 16, 32 or 64
  int32_t cluster;  // blocks of a cluster: 1, 2, 4, 8 or 16
  int32_t splits;   // clusters that share one batch row: 1..32
};

constexpr int kAbiVersion = 1;

int appliance_kernels_abi_version();
// Once for each device and head count, before any capture. clusters[i]: how many clusters of 2^i blocks, i = 0..4, the
// device runs at once.
int appliance_sparse_mla_decode_prepare(int heads, int* heads_per_block, int* tokens_per_tile, int* clusters);
// Threads and bytes of shared memory of a block, without a GPU.
int appliance_sparse_mla_decode_block(int heads, int* threads, int* shared_bytes);
// Launches on `stream`; returns a cudaError_t.
int appliance_sparse_mla_decode(const SparseMlaDecodeParams* params, void* stream);
const char* appliance_kernels_error_string(int error);

}  // extern "C"
#pragma GCC visibility pop
