// The C interface of the indexer's top-k. Python mirrors the struct with ctypes: change both together.
#pragma once
#include <cstdint>

#pragma GCC visibility push(default)
extern "C" {

struct IndexerTopkParams {
  const float* scores;        // [rows, width]
  const int32_t* lengths;     // [rows] columns that count; more than `width` count as that
  const int32_t* page_table;  // [rows, table_width], or null: no tokens are written
  int32_t* tokens;            // [rows, topk] page * page_size + offset, or null
  int32_t* positions;         // [rows, topk] columns, or null
  int64_t scores_stride, page_table_stride, tokens_stride, positions_stride;  // elements
  int32_t width;                                                              // 1..2^24
  int32_t table_width;
  int32_t log2_page_size;
  int32_t topk;  // 1..2048
  int32_t rows;
  int32_t cluster;  // blocks that share a row: a power of two up to what prepare says
};

// Once for each device, before any capture: how many blocks the device runs at once, and the largest cluster.
int appliance_indexer_topk_prepare(int* blocks, int* cluster);
// Threads and bytes of shared memory of a block, without a GPU.
int appliance_indexer_topk_block(int* threads, int* shared_bytes);
// Launches on `stream`; returns a cudaError_t.
int appliance_indexer_topk(const IndexerTopkParams* params, void* stream);

}  // extern "C"
#pragma GCC visibility pop
