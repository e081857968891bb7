// How one token of the KV cache lies in memory. The attention kernel knows no number of this file by itself: another
// layout is another struct with the same members.
#pragma once
#include <cstdint>

// DeepSeek-V4 (584 bytes a token): 448 fp8 e4m3 values (no position), 64 bf16 values (rotary), 7 UE8M0 scales + 1 pad.
// A page holds first the data of all its tokens, then the scales of all its tokens, then padding up to the page stride.
struct Fp8Ue8m0Layout {
  static constexpr int kHeadDim = 512;     // values a token: key and value are the same vector
  static constexpr int kGroup = 64;        // values that share one scale; also the slice of one warp
  static constexpr int kFp8Groups = 7;     // groups 0..6 are fp8, group 7 is bf16
  static constexpr int kTokenBytes = 576;  // data bytes a token
  static constexpr int kScaleBytes = 8;    // scale bytes a token
  static constexpr int kGroups = kHeadDim / kGroup;

  static constexpr __host__ __device__ int group_offset(int group) { return group * kGroup; }  // bytes; bf16 comes last
};
