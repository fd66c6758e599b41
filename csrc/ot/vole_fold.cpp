// SPDX-License-Identifier: Apache-2.0
#include "ot/vole_fold.h"

#include <cstring>

#include "base/error.h"
#include "base/multiversion.h"

namespace privml {
namespace {

typedef u64 Vector __attribute__((vector_size(32)));

// Adds neighbours pairwise: the right neighbours of level b are the rows with bit b set.
template <int Digit>
[[gnu::always_inline]] inline void fold_columns(const u8* rows, i64 row_bytes, u8* total,
                                                u8* planes) {
  constexpr int kRows = 1 << Digit;
  for (i64 at = 0; at < row_bytes; at += sizeof(Vector)) {
    Vector v[kRows];
    for (int x = 0; x < kRows; ++x) std::memcpy(&v[x], rows + x * row_bytes + at, sizeof(Vector));
    for (int b = 0; b < Digit; ++b) {
      u8* to = planes + b * row_bytes + at;
      Vector plane;
      std::memcpy(&plane, to, sizeof(plane));
      for (int x = 0; x < kRows >> (b + 1); ++x) {
        plane ^= v[2 * x + 1];
        v[x] = v[2 * x] ^ v[2 * x + 1];
      }
      std::memcpy(to, &plane, sizeof(plane));
    }
    std::memcpy(total + at, &v[0], sizeof(Vector));
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
