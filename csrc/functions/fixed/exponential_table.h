// SPDX-License-Identifier: Apache-2.0
// Tables of e^-z, built in integer arithmetic from checked-in constants, so that every machine has
// the same ones (tables/exponential_powers.inc, written by scripts/make_tables.py).
#pragma once

#include <vector>

#include "base/types.h"

namespace privml::fixed {

// 2^64 e^(-a / 2^scale), off by less than 2^8; 0 <= scale <= 62.
u128 exponential_fraction(u64 a, int scale);

// The largest argument a / 2^scale whose exponential is at most 2^power, but a <= most, and
// 2^64 e^(a / 2^scale) / 2^power; 0 <= power <= 31, 0 <= scale <= 30.
struct LargestExponential {
  u64 argument;
  u128 fraction;
};
LargestExponential largest_exponential(int power, int scale, u64 most);

// table[j] = start / 2^64 * e^(-j * 2^(offset - scale)) to the nearest multiple of 2^-precision,
// but at most `most`, as an integer; 2^bits entries.
struct ExponentialTable {
  int bits;
  int offset;
  int scale;
  int precision;  // 0..40
  u128 start = u128{1} << 64;
  u64 most = ~u64{0};
};
std::vector<u64> exponential_table(const ExponentialTable& shape);

}  // namespace privml::fixed
