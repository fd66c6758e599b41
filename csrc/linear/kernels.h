// SPDX-License-Identifier: Apache-2.0
// The innermost loops of ring products, one set per instruction set and word.
//
// A kernel multiplies packed panels: a holds inner x rows words, b inner x columns words (aligned
// to a cache line), and tile becomes the rows x columns sums, row-major, aligned. Words are u32 for
// products mod 2^32 and below, u64 above.
#pragma once

#include <array>

#include "base/cpu.h"
#include "base/types.h"

namespace privml::linear {

inline constexpr i64 kMaxRows = 8;

template <class Word>
struct Kernels {
  using Function = void (*)(const Word* a, const Word* b, i64 inner, Word* tile);
  i64 rows = 0;                             // of the tallest kernel
  i64 columns = 0;                          // of every kernel
  std::array<Function, kMaxRows + 1> of{};  // of[r] for 1 <= r <= rows
};

template <class Word>
Kernels<Word> portable_kernels();
template <class Word>
Kernels<Word> avx2_kernels();
template <class Word>
Kernels<Word> avx512_kernels();

template <class Word>
Kernels<Word> kernels_of(Backend backend);

}  // namespace privml::linear
