// The C interface of sparse MLA prefill. Python mirrors the struct with ctypes: change both together.
#pragma once
#include "sparse_mla_decode.h"

#pragma GCC visibility push(default)
extern "C" {

struct SparseMlaPrefillParams {
  const void* q;              // [rows, heads, 512] bf16, last dimension dense; 16-byte aligned rows
  int64_t q_batch_stride;     // elements
  int64_t q_head_stride;      // elements
  void* out;                  // [rows, heads, 512] bf16, dense
  float* lse;                 // [rows, heads], natural logarithm, without the sink
  const float* sink;          // [heads] or null
  SparseMlaSource source[2];  // window cache, extra cache
  float softmax_scale;
  int32_t rows;   // query tokens: 1..65535
  int32_t heads;  // 8, 16, 32 or 64
};

// Once for each device and head count, before any capture: how many blocks the device runs at once.
int appliance_sparse_mla_prefill_prepare(int heads, int* heads_per_block, int* blocks);
// Threads and bytes of shared memory of a block, without a GPU.
int appliance_sparse_mla_prefill_block(int heads, int* threads, int* shared_bytes);
// Launches on `stream`; returns a cudaError_t.
int appliance_sparse_mla_prefill(const SparseMlaPrefillParams* params, void* stream);

}  // extern "C"
#pragma GCC visibility pop
