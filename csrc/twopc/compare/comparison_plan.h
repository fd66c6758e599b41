// SPDX-License-Identifier: Apache-2.0
// How a comparison is cut into digits and which digits are joined when: public data, a function of
// widths, prices and the number of instances.
#pragma once

#include <algorithm>
#include <vector>

#include "base/types.h"

namespace privml::twopc {

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

// Joins the states of two neighbouring ranges of digits, or of three with one in the `middle`; the
// result replaces the state at `high`.
struct Join {
  int high;
  int low;
  bool greater;
  bool equality;  // whether the equality of the joined range is used later
  int middle = -1;
  bool of_three() const { return middle >= 0; }
};

struct ComparisonPlan {
  std::vector<Digit> digits;              // least significant first
  std::vector<std::vector<Join>> levels;  // the joins of one level are independent
  int low_root = 0;                       // where the state of the low `split` bits stands
  int root = 0;                           // where the state of the whole stands
};

// A level of joins over a slow link: at least a hop of 100 Mbps and 40 ms over 2^16 instances.
inline constexpr double kLevelBits = 64;
// The same for one instance alone, by the factor that chunks of the link are longer by.
inline constexpr double kHopBits = 1 << 19;
// Over a fast link, a hop of 1 Gbps and 0.25 ms for one instance alone; a level is worth at least
// kFewestLevelBits there, and at most kLevelBits.
inline constexpr double kFastHopBits = 1 << 18, kFewestLevelBits = 4;
// Making and hashing a correlation: 20 ns of a link of 400 Mbps.
inline constexpr double kComputingBits = 8;

// What a plan is chosen by, in bits on the wire.
struct ComparisonPrices {
  double correlation;
  double level = kLevelBits;
  bool threes = false;  // whether three ranges may be joined at once
  bool slow() const { return threes; }
};

// Of a party or meter, for n instances, which share messages: over a slow link these count however
// many instances share them.
template <class Planner>
ComparisonPrices comparison_prices(const Planner& planner, i64 n) {
  const double correlation = planner.correlation_bits;
  const double instances = static_cast<double>(std::max<i64>(n, 1));
  if (planner.chunk_factor == 1)
    return {correlation, std::clamp(kFastHopBits / instances, kFewestLevelBits, kLevelBits)};
  const double hop = kHopBits * static_cast<double>(planner.chunk_factor);
  return {correlation, std::max(kLevelBits, hop / instances), true};
}

// The digits and joins with the least plan_bits(). Throws InvalidArgument unless 1 <= bits <= 64
// and 0 <= split < bits.
ComparisonPlan plan_comparison(const ComparisonShape& shape, ComparisonPrices prices);

// Digits of `digit_bits` bits (2..5), a few of them larger where that saves a level of joins of
// `radix` ranges.
ComparisonPlan plan_with_digits(const ComparisonShape& shape, int digit_bits, int radix = 2);

// Digits of half_bits / 2 bits (6..10 halves) on average, all of about the same size; `balanced`:
// a power of `radix` of them if these are not too large.
ComparisonPlan plan_with_even_digits(const ComparisonShape& shape, int half_bits, bool balanced,
                                     int radix = 2);

// What an instance costs.
double plan_bits(const ComparisonPlan& plan, ComparisonPrices prices);

}  // namespace privml::twopc
