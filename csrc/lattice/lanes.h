// SPDX-License-Identifier: Apache-2.0
// Compiler vectors of L doubles, words and short words. In an unnamed namespace, since each file
// compiles them for its own instructions.
#pragma once

#include "base/types.h"

namespace privml::lattice {
namespace {

template <int L>
struct Lanes {
  // As they lie in arrays, at any element.
  typedef double StoredReals __attribute__((vector_size(8 * L), aligned(8), may_alias));
  typedef u64 StoredNumbers __attribute__((vector_size(8 * L), aligned(8), may_alias));
  typedef double Reals __attribute__((vector_size(8 * L)));
  typedef u64 Numbers __attribute__((vector_size(8 * L)));
  typedef u16 Shorts __attribute__((vector_size(2 * L)));
};

// Short words as numbers and back. Where compilers go through single elements, a set of kernels has
// functions of its own for it.
template <int L>
struct ShortWords {
  using Numbers = typename Lanes<L>::Numbers;
  using Shorts = typename Lanes<L>::Shorts;
  static Numbers widened(const u16* in) {
    Shorts shorts;
    __builtin_memcpy(&shorts, in, sizeof shorts);
    return __builtin_convertvector(shorts, Numbers);
  }
  // numbers below 2^16
  static void narrow(Numbers numbers, u16* out) {
    const Shorts shorts = __builtin_convertvector(numbers, Shorts);
    __builtin_memcpy(out, &shorts, sizeof shorts);
  }
};

// x - 0 is x for every x, unlike x + 0, and costs no addition.
template <int L>
typename Lanes<L>::Reals broadcast(double x) {
  return x - typename Lanes<L>::Reals{};
}

constexpr double kWhole = 4503599627370496;  // 2^52: its low bits are an unsigned integer
constexpr double kRound = 1.5 * kWhole;      // adding it rounds to an integer
constexpr u64 kWholeBits = 0x4330000000000000;
constexpr u64 kRoundBits = 0x4338000000000000;

}  // namespace
}  // namespace privml::lattice
