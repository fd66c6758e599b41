// SPDX-License-Identifier: Apache-2.0
// The exponential of what is below zero, as the functions share it: digits, tables, products.
//
// Functionality  a in Z_{2^bits}, read as unsigned; out ~ 2^out_scale * e^(-a / 2^scale), a number
//                below 2^(out_scale + 1) in Z_{2^(out_scale + 2)}.
// Method         digits of at most 8 bits, one table each (to the nearest), products from the most
//                significant digit down, each truncated. Where the value vanishes for a >=
//                2^covered, the higher bits of a are only tested for zero. From the third digit on
//                the words carry guard bits.
// Leakage        none beyond length and formats. Assumption: correlated OT, correlation-robust
// hash. Source         SiRNN (Rathee et al., S&P 2021), section V-A, Figure 3.
#pragma once

#include <vector>

#include "ot/cost.h"
#include "ot/party.h"

namespace privml {

struct Decay {
  int bits;
  int covered;     // bits that are looked up
  int digit_bits;  // of all digits but the top one
  int precision;   // of the words
  int out_scale;
  std::vector<std::vector<u64>> tables;  // least significant digit first

  int digits() const { return static_cast<int>(tables.size()); }
  int top_bits() const { return covered - digit_bits * (digits() - 1); }
  bool tests_high_bits() const { return covered < bits; }
};

struct DecayShape {
  int bits;   // 1..34
  int scale;  // -1..30
  int out_scale;
  u128 start = u128{1} << 64;  // 2^64 times the value at 0
  bool below_one = false;      // the value at 0 is a little less than 1
};
Decay plan_decay(const DecayShape& shape);

void clear_decay(const Decay& plan, std::span<const u64> a, std::span<u64> out);

// One chunk.
void decay(Party& party, const Decay& plan, std::span<const u64> a, std::span<u64> out);
void cost_decay(CostMeter& meter, const Decay& plan, i64 n);

}  // namespace privml
