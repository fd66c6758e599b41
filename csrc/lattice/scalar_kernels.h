// SPDX-License-Identifier: Apache-2.0
// The loops of scalar_product.h, one set per instruction set.
//
// A word is split into two or three balanced digits, so that the sums of a block of digits times
// weights are integers below 2^53, which doubles hold exactly.
#pragma once

#include <array>

#include "lattice/words.h"

namespace privml::lattice {

inline constexpr i64 kMostScalarRows = 12, kMostScalarColumns = 16;

// How numbers modulo 2^(64 + low_bits) are split: the upper digits have what is left.
struct Digits {
  int count;  // 2 or 3
  int bits;   // of all but the highest one
  int low_bits;
  i64 block;  // products that one sum of doubles takes
};

struct ScalarKernels {
  // A panel of digits times the weights of some rows; adds to sums, rows x columns.
  using Multiply = void (*)(const double* weights, const double* digits, i64 inner, i64* sums);
  i64 rows = 0, columns = 0;                       // of the tallest kernel, and of every one
  std::array<Multiply, kMostScalarRows + 1> of{};  // of[r] for 1 <= r <= rows
  // Words of `inner` rows, `stride` apart, into a panel for each digit, `apart` numbers after the
  // last.
  void (*split)(const Digits& digits, const u64* high, const u16* low, i64 stride, i64 inner,
                double* panels, i64 apart);
  // The words that `count` digits' sums stand for, each `stride` after the last.
  void (*join)(const Digits& digits, const i64* sums, i64 stride, u64* high, u16* low);
};

const ScalarKernels& portable_scalars();
const ScalarKernels& avx2_scalars();
const ScalarKernels& avx512_scalars();

}  // namespace privml::lattice
