// The C interface of the indexer's logits. Python mirrors the struct with ctypes: change both together.
#pragma once
#include <cstdint>

#pragma GCC visibility push(default)
extern "C" {

struct IndexerLogitsParams {
  const void* q;             // [rows, 64, 128] e4m3, a row dense; 16-byte aligned rows
  const void* cache;         // pages of 64 tokens: 64 x 128 e4m3, then 64 fp32 scales; 16-byte aligned
  const float* weights;      // [rows, 64], a row dense
  const int32_t* lengths;    // [rows] tokens of each row; more than `width` or the page table holds count as that
  const int32_t* page_table; // [rows, table_width]; a page outside 0..pages-1 gives -inf
  float* logits;             // [rows, width]; columns at or beyond a row's length are not written
  int64_t q_stride, page_stride, weights_stride, page_table_stride, logits_stride;  // bytes, bytes, then elements
  int32_t rows;              // 1..2048
  int32_t pages;
  int32_t table_width;
  int32_t width;
};

// Once for each device, before any capture: how many blocks the device runs at once.
int appliance_indexer_logits_prepare(int* blocks);
// Threads and bytes of shared memory of a block, without a GPU.
int appliance_indexer_logits_block(int* threads, int* shared_bytes);
// Launches `blocks` blocks on `stream`; returns a cudaError_t.
int appliance_indexer_logits(const IndexerLogitsParams* params, int blocks, void* stream);

}  // extern "C"
#pragma GCC visibility pop
