// SPDX-License-Identifier: Apache-2.0
// e^-a for a >= 0 by digits, tables and products; several functions use it.
//
// Functionality  a in Z_{2^bits}, read as unsigned; out ~ 2^out_scale * e^(-a / 2^scale) in
//                Z_{2^out_bits}.
// Method         digits of at most 8 bits, one table each (to the nearest); the entries stay
//                exclusive-or shared and are multiplied from the most significant digit down, each
//                product rounded. A table of values near 1 holds their distances from 1,
//                which have fewer bits. If the value rounds to zero for a >= 2^covered, the higher
//                bits of a are only tested for zero. With three digits or more the words have guard
//                bits.
// Leakage        none beyond length and formats. Assumption: correlated OT, correlation-robust
//                hash.
// Cost           per digit one lookup_xor, between digits one truncate_reduce; per product one
//                multiply_word and one truncate_reduce.
// Source         SiRNN (Rathee et al., S&P 2021), section V-A, Figure 3.
#pragma once

#include <vector>

#include "functions/evaluator/evaluator.h"

namespace privml::fixed {

// The table of one digit: entry j is the value, or 2^precision - value if `complement`.
struct ExponentialDigit {
  int offset;
  int bits;
  std::vector<u64> entries;
  int entry_bits;
  bool complement;
};

struct NegativeExponential {
  int bits;
  int covered;    // bits that are looked up
  int precision;  // of the tables
  int out_scale;
  int out_bits;
  std::vector<ExponentialDigit> digits;  // least significant first

  int top() const { return static_cast<int>(digits.size()) - 1; }
};

struct NegativeExponentialShape {
  int bits;                    // 1..33
  int scale;                   // 0..30
  int out_scale;               // 0..31
  int out_bits;                // up to 33
  u128 start = u128{1} << 64;  // 2^64 times the value at 0
  bool below_one = false;      // the value at 0 is a little less than 1, so out < 2^out_scale
};
NegativeExponential plan_negative_exponential(const NegativeExponentialShape& shape);

void clear_negative_exponential(const NegativeExponential& plan, std::span<const u64> a,
                                std::span<u64> out);

functions::RingShares negative_exponential(functions::Evaluator& evaluator,
                                           const NegativeExponential& plan,
                                           const functions::RingShares& a);

}  // namespace privml::fixed
