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
