// SPDX-License-Identifier: Apache-2.0
// A kernel over compiler vectors, for instruction sets that multiply lanes of the word's width.
// Everything stands in an unnamed namespace: each file that includes this compiles its own copy for
// its own instructions.
#pragma once

#include <utility>

#include "linear/kernels.h"

namespace privml::linear {
namespace {

// Rows x (vectors * lanes) sums in registers; one word of a is spread over a register at a time.
template <class Word, int bytes, int vectors, int rows>
void multiply_panels(const Word* __restrict a, const Word* __restrict b, i64 inner,
                     Word* __restrict tile) {
  typedef Word Vector __attribute__((vector_size(bytes)));
  constexpr int kLanes = bytes / sizeof(Word);
  Vector sums[rows][vectors] = {};
  for (i64 k = 0; k < inner; ++k, a += rows, b += vectors * kLanes) {
    Vector y[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) y[v] = reinterpret_cast<const Vector*>(b)[v];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const Vector x = a[r] - Vector{};
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] += x * y[v];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) reinterpret_cast<Vector*>(tile)[r * vectors + v] = sums[r][v];
  }
}

template <class Word, int bytes, int vectors, int... rows>
Kernels<Word> vector_kernels(std::integer_sequence<int, rows...>) {
  Kernels<Word> kernels{sizeof...(rows), vectors * bytes / static_cast<i64>(sizeof(Word)), {}};
  ((kernels.of[rows + 1] = multiply_panels<Word, bytes, vectors, rows + 1>), ...);
  return kernels;
}

}  // namespace
}  // namespace privml::linear
