// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/exponential_table.h"

#include <algorithm>

#include "base/error.h"

namespace privml::fixed {
namespace {

constexpr u64 kPowers[] = {
#include "functions/fixed/tables/exponential_powers.inc"
};
constexpr u64 kLogarithmOfTwo[] = {
#include "functions/fixed/tables/logarithm_of_two.inc"
};
constexpr int kLeast = -62, kMost = 6;  // kPowers[k - kLeast] = 2^64 e^(-2^k)

// value * e^(-2^k)
u128 times_power(u128 value, int k) {
  if (k < kLeast) return value;
  if (k > kMost) return 0;
  const u64 factor = kPowers[k - kLeast];
  return (value >> 64) * factor + (((value & ~u64{0}) * factor) >> 64);
}

// value * e^(-a / 2^scale)
u128 times_exponential(u128 value, u64 a, int scale) {
  for (int bit = 0; bit < 64; ++bit)
    if ((a >> bit) & 1) value = times_power(value, bit - scale);
  return value;
}

}  // namespace

u128 exponential_fraction(u64 a, int scale) {
  expect(scale >= 0 && scale <= 62, "exponential_fraction: scale must lie in 0..62");
  return times_exponential(u128{1} << 64, a, scale);
}

LargestExponential largest_exponential(int power, int scale, u64 most) {
  expect(power >= 0 && power <= 31 && scale >= 0 && scale <= 30,
         "largest_exponential: power must lie in 0..31, scale in 0..30");
  const u128 logarithm = u128{kLogarithmOfTwo[0]} * static_cast<u64>(power);  // of scale 64
  const u64 fitting = static_cast<u64>(logarithm >> (64 - scale));
  const u64 rest = static_cast<u64>(logarithm - (u128{fitting} << (64 - scale)));
  const u64 argument = std::min(fitting, most);
  const u128 fraction = times_exponential(u128{1} << 64, rest >> 2, 62);
  return {argument, times_exponential(fraction, fitting - argument, scale)};
}

std::vector<u64> exponential_table(const ExponentialTable& shape) {
  std::vector<u64> table(u64{1} << shape.bits);
  for (u64 j = 0; j < table.size(); ++j) {
    u128 value = shape.start;
    for (int bit = 0; bit < shape.bits; ++bit)
      if ((j >> bit) & 1) value = times_power(value, bit + shape.offset - shape.scale);
    const u128 half = u128{1} << (63 - shape.precision);
    table[j] = std::min(static_cast<u64>((value + half) >> (64 - shape.precision)), shape.most);
  }
  return table;
}

}  // namespace privml::fixed
