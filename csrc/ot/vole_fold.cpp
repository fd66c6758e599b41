// SPDX-License-Identifier: Apache-2.0
#include "ot/vole_fold.h"

#include "base/error.h"
#include "base/multiversion.h"

namespace privml {
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
                                                u8* planes) {
  for (i64 at = 0; at < row_bytes; at += sizeof(Vector)) {
    Vector plane[Digit + 1], sum;
#pragma GCC unroll 4
    for (int b = 0; b < Digit; ++b) {
      plane[b] = *reinterpret_cast<const Vector*>(planes + b * row_bytes + at);
    }
    fold_subtree<Digit>(rows + at, row_bytes, plane, sum);
#pragma GCC unroll 4
    for (int b = 0; b < Digit; ++b) {
      *reinterpret_cast<Vector*>(planes + b * row_bytes + at) = plane[b];
    }
    *reinterpret_cast<Vector*>(total + at) = sum;
  }
}

PRIVML_TARGET_CLONES void fold(const u8* rows, int digit, i64 row_bytes, u8* total, u8* planes) {
  switch (digit) {
    case 0:
      return fold_columns<0>(rows, row_bytes, total, planes);
    case 1:
      return fold_columns<1>(rows, row_bytes, total, planes);
    case 2:
      return fold_columns<2>(rows, row_bytes, total, planes);
    case 3:
      return fold_columns<3>(rows, row_bytes, total, planes);
    case 4:
      return fold_columns<4>(rows, row_bytes, total, planes);
  }
}

}  // namespace

void vole_fold(const Block* rows, int digit, i64 blocks, Block* total, Block* planes) {
  expect(0 <= digit && digit <= kFoldMaxDigit && blocks % 2 == 0,
         "vole_fold: digit must be in 0..4 and rows an even number of blocks");
  fold(reinterpret_cast<const u8*>(rows), digit, blocks * static_cast<i64>(sizeof(Block)),
       reinterpret_cast<u8*>(total), reinterpret_cast<u8*>(planes));
}

}  // namespace privml
