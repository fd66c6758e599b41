// SPDX-License-Identifier: Apache-2.0
// How a comparison is cut into digits and which digits are joined when: public data, a function of
// the widths alone.
#pragma once

#include <vector>

#include "base/types.h"

namespace privml {

// What is asked about numbers of `bits` bits: [x0 > x1] (`greater`) and [x0 = x1] (`equality`), at
// least one of them; with 0 < split < bits also the same for the low `split` bits alone.
struct ComparisonShape {
  int bits = 64;
  int split = 0;
  bool equality = false;
  bool greater = true;
};

// One digit, decided by one 1-of-2^bits OT whose messages hold what is asked of the digit; the
// first message is not sent (digit_transfer.h).
struct Digit {
  int offset;
  int bits;
  bool greater;
  bool equality;
  int word_bits() const { return (greater && equality ? 2 : 1) * ((1 << bits) - 1); }
};

// Joins the states of two neighbouring ranges of digits; the result replaces the state at `high`.
struct Join {
  int high;
  int low;
  bool greater;
  bool equality;  // whether the equality of the joined range is used later
};

struct ComparisonPlan {
  std::vector<Digit> digits;              // least significant first
  std::vector<std::vector<Join>> levels;  // the joins of one level are independent
  int low_root = 0;                       // where the state of the low `split` bits stands
  int root = 0;                           // where the state of the whole stands
};

// The digit size with the least plan_bits(); `correlation_bits`: what a correlation costs on the
// wire. Throws InvalidArgument unless 1 <= bits <= 64 and 0 <= split < bits.
ComparisonPlan plan_comparison(const ComparisonShape& shape, double correlation_bits);

// Digits of `digit_bits` bits (2..5), a few of them larger where that saves a level.
ComparisonPlan plan_with_digits(const ComparisonShape& shape, int digit_bits);

// What an instance costs: bits on the wire, and the prices below.
double plan_bits(const ComparisonPlan& plan, double correlation_bits);

// A level of joins: a hop of a wide-area link (100 Mbps, 40 ms one way) over 2^16 instances.
inline constexpr double kLevelBits = 64;
// Making and hashing a correlation: 20 ns of a link of 400 Mbps.
inline constexpr double kComputingBits = 8;

}  // namespace privml
