// SPDX-License-Identifier: Apache-2.0
// A floating-point number in one 64-bit word, shared or clear.
//
// From the low end: mantissa (q + 1 bits), exponent + 2^(p-1) - 1 (p + 2 bits), sign, and the
// complement of the zero bit. The word 0 is +0, shared as in the clear. Needs p + q + 5 <= 64.
#pragma once

#include "functions/float/format.h"

namespace privml::floating {

// (p, q), checked.
inline FloatFormat word_format(int p, int q) {
  const FloatFormat f{p, q};
  expect_float_format(f);
  expect(f.word_bits() <= 64, "float format: a number takes more than 64 bits");
  return f;
}

// `rank` is the party whose shares these are; 0 for clear numbers. Public constants (the bias, the
// complement) are party 0's.
inline void unpack_words(std::span<const u64> words, FloatFormat f, int rank, FloatSpan out) {
  const u64 bias = rank == 0 ? (u64{1} << (f.exponent - 1)) - 1 : 0;
  const int e = f.mantissa_bits(), s = e + f.exponent_bits();
  for (std::size_t i = 0; i < words.size(); ++i) {
    out.mantissa[i] = words[i] & low_mask(e);
    out.exponent[i] = ((words[i] >> e) - bias) & low_mask(f.exponent_bits());
    out.sign[i] = (words[i] >> s) & 1;
    out.zero[i] = ((words[i] >> (s + 1)) & 1) ^ (rank == 0 ? 1 : 0);
  }
}

inline void pack_words(FloatView in, FloatFormat f, int rank, std::span<u64> words) {
  const u64 bias = rank == 0 ? (u64{1} << (f.exponent - 1)) - 1 : 0;
  const int e = f.mantissa_bits(), s = e + f.exponent_bits();
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = (in.mantissa[i] & low_mask(e)) |
               ((in.exponent[i] + bias) & low_mask(f.exponent_bits())) << e | u64{in.sign[i]} << s |
               u64(in.zero[i] ^ (rank == 0 ? 1 : 0)) << (s + 1);
  }
}

}  // namespace privml::floating
