// SPDX-License-Identifier: Apache-2.0
#include "ot/vole_fold.h"

#include <algorithm>

#include "base/error.h"
#include "base/multiversion.h"
#include "ot/kernels.h"

namespace privml::ot {
namespace {

// Two blocks; they are aligned as blocks are.
typedef u64 Vector __attribute__((vector_size(32), aligned(16), may_alias));

// Sums 2^Bits rows into `total` and the upper half of each subtree into the plane of its bit; depth
// first, so that only one partial sum per bit is live.
template <int Bits>
[[gnu::always_inline]] inline void fold_subtree(const u8* rows, i64 row_bytes, Vector* planes,
                                                Vector& total) {
  if constexpr (Bits == 0) {
    total = *reinterpret_cast<const Vector*>(rows);
  } else {
    Vector upper;
    fold_subtree<Bits - 1>(rows, row_bytes, planes, total);
    fold_subtree<Bits - 1>(rows + (row_bytes << (Bits - 1)), row_bytes, planes, upper);
    planes[Bits - 1] ^= upper;
    total ^= upper;
  }
}

template <int Digit>
[[gnu::always_inline]] inline void fold_columns(const u8* rows, i64 row_bytes, u8* total,
                                                u8* planes, i64 plane_bytes) {
  for (i64 at = 0; at < row_bytes; at += sizeof(Vector)) {
    Vector plane[Digit + 1], sum;
#pragma GCC unroll 4
    for (int b = 0; b < Digit; ++b) {
      plane[b] = *reinterpret_cast<const Vector*>(planes + b * plane_bytes + at);
    }
    fold_subtree<Digit>(rows + at, row_bytes, plane, sum);
#pragma GCC unroll 4
    for (int b = 0; b < Digit; ++b) {
      *reinterpret_cast<Vector*>(planes + b * plane_bytes + at) = plane[b];
    }
    *reinterpret_cast<Vector*>(total + at) = sum;
  }
}

PRIVML_TARGET_CLONES void fold(const u8* rows, int digit, i64 row_bytes, u8* total, u8* planes,
                               i64 plane_bytes) {
  switch (digit) {
    case 0:
      return fold_columns<0>(rows, row_bytes, total, planes, plane_bytes);
    case 1:
      return fold_columns<1>(rows, row_bytes, total, planes, plane_bytes);
    case 2:
      return fold_columns<2>(rows, row_bytes, total, planes, plane_bytes);
    case 3:
      return fold_columns<3>(rows, row_bytes, total, planes, plane_bytes);
    case 4:
      return fold_columns<4>(rows, row_bytes, total, planes, plane_bytes);
  }
}

void check(int digit, i64 blocks) {
  expect(0 <= digit && digit <= kFoldMaxDigit && blocks % kFoldBlocks == 0,
         "vole_fold: digit must be in 0..4 and rows a multiple of four blocks");
}

}  // namespace

void vole_fold(const crypto::Block* rows, int digit, i64 blocks, crypto::Block* total,
               const FoldPlanes& planes) {
  check(digit, blocks);
  if (!planes.add) {
    for (int b = 0; b < digit; ++b)
      std::fill_n(planes.first + b * planes.stride, blocks, crypto::kZeroBlock);
  }
  constexpr i64 kBytes = sizeof(crypto::Block);
  fold(reinterpret_cast<const u8*>(rows), digit, blocks * kBytes, reinterpret_cast<u8*>(total),
       reinterpret_cast<u8*>(planes.first), planes.stride * kBytes);
}

void vole_expand(const crypto::Aes128* seeds, int digit, u64 position, i64 blocks,
                 crypto::Block* scratch, crypto::Block* total, const FoldPlanes& planes) {
  check(digit, blocks);
  if (const OtKernels* kernels = ot_kernels(seeds->backend()); kernels && digit > 0) {
    static_assert(sizeof(crypto::Aes128) % sizeof(crypto::Block) == 0);
    return kernels->expand(seeds->round_keys(), sizeof(crypto::Aes128) / sizeof(crypto::Block),
                           digit, position, blocks, total, planes);
  }
  vole_expand_portable(seeds, digit, position, blocks, scratch, total, planes);
}

void vole_expand_portable(const crypto::Aes128* seeds, int digit, u64 position, i64 blocks,
                          crypto::Block* scratch, crypto::Block* total, const FoldPlanes& planes) {
  for (i64 x = 0; x < i64{1} << digit; ++x) {
    seeds[x].encrypt_counter({position, 0}, scratch + x * blocks, blocks);
  }
  vole_fold(scratch, digit, blocks, total, planes);
}

}  // namespace privml::ot
