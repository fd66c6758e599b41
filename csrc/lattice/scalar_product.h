// SPDX-License-Identifier: Apache-2.0
// Matrices of small integers times matrices of words modulo 2^(64 + low_bits).
//
// Functionality  out(i, j) = sum over k of weights(i, k) in(k, j), row-major.
// Method         blocked as linear/product.h; words are split into two or three digits whose sums
//                of products are integers that doubles hold exactly (scalar_kernels.h).
// Leakage        none: time and memory access depend on shapes and on the bound of the weights.
#pragma once

#include "base/buffer.h"
#include "base/cpu.h"
#include "lattice/scalar_kernels.h"
#include "lattice/words.h"

namespace privml::lattice {

inline constexpr u64 kMostScalar = u64{1} << 20;
inline constexpr i64 kMostInner = i64{1} << 16;

// Weights as products take them, for several matrices of words.
class ScalarWeights {
 public:
  // weights: rows x inner words, signed, of at most `largest` <= kMostScalar in absolute value,
  // inner at most kMostInner, for words of 64 + low_bits bits. Throws InvalidArgument if that does
  // not hold.
  ScalarWeights(std::span<const u64> weights, i64 rows, i64 inner, u64 largest, int low_bits,
                Backend backend = best_backend());
  // in: inner x columns; out: rows x columns, the beginnings of its rows `stride` >= columns apart,
  // up to the end of the last row. Throws InvalidArgument for other sizes. Threads may multiply at
  // the same time.
  void multiply(WordsView in, i64 columns, WordsOutput out, i64 stride) const;

 private:
  const ScalarKernels& kernels_;
  i64 rows_, inner_;
  Digits digits_;
  WipedVector<double> packed_;
};

// A product of weights that serve once; out: rows x columns without gaps.
void multiply_scalars(std::span<const u64> weights, i64 rows, i64 inner, u64 largest, WordsView in,
                      i64 columns, int low_bits, WordsOutput out, Backend backend = best_backend());

}  // namespace privml::lattice
