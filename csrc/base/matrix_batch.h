// SPDX-License-Identifier: Apache-2.0
// Matrices that stand in memory as their owner keeps them, transposed or cut out of larger ones.
#pragma once

#include "base/types.h"

namespace privml {

// Matrices of words: element (i, j) of number b is words[b * batch + i * row + j * column]. Without
// words, those of another party.
struct MatrixBatch {
  const u64* words = nullptr;
  i64 batch = 0, row = 0, column = 0;

  MatrixBatch turned() const { return {words, batch, column, row}; }
  const u64* matrix(i64 number) const { return words + number * batch; }
};

// rows x columns matrices, one after another, row-major.
inline MatrixBatch row_major(std::span<const u64> words, i64 rows, i64 columns) {
  return {words.empty() ? nullptr : words.data(), rows * columns, columns, 1};
}

// How words are read: `bits` low bits, 1..64, as an unsigned number or in two's complement. Higher
// bits of a word are ignored.
struct NumberFormat {
  int bits = 64;
  bool is_signed = false;
  u64 operator()(u64 word) const {
    const u64 sign = static_cast<u64>(is_signed) << (bits - 1);
    return ((word & low_mask(bits)) ^ sign) - sign;
  }
};

}  // namespace privml
