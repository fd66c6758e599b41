// SPDX-License-Identifier: Apache-2.0
#include "functions/float/gelu.h"

#include "functions/float/reduction.h"

namespace privml::floating {
namespace {

constexpr int kExponentBits = kFloat32.exponent_bits();

// -t^2 / 2 in Z_{2^kReductionBits}, of t with 32 fraction bits in Z_{2^37}.
functions::RingShares minus_half_square(functions::Evaluator& evaluator,
                                        const functions::RingShares& t) {
  constexpr int kHigh = 37 - kSquareSplit, kLow = kSquareSplit + 1, kSum = 56;
  const twopc::FactorFormat high{kHigh, false, true}, low{kLow, false, true};  // top bits 0
  const functions::Evaluator::Split parts = evaluator.split_number(t, 37, kSquareSplit, kLow);
  const functions::RingShares square =
      evaluator.multiply(parts.high, high, parts.high, high, 2 * kHigh);
  const functions::RingShares cross = evaluator.extend_nonnegative(
      evaluator.multiply(parts.high, high, parts.low, low, kHigh + kLow), kHigh + kLow, kSum);
  const functions::RingShares sum =
      evaluator.map(evaluator.n, kSum, [&](i64 i) { return (square[i] << 16) + cross[i]; });
  const functions::RingShares half = evaluator.extend_nonnegative(
      evaluator.truncate_reduce(sum, kSum, 11), kSum - 11, kReductionBits);
  return evaluator.map(evaluator.n, kReductionBits, [&](i64 i) { return u64{0} - half[i]; });
}

// By the exponent: [t >= 1/2, not large].
functions::BitShares half_or_more(functions::Evaluator& evaluator, const FloatShares& a) {
  std::vector<u64> table(256);
  for (int i = 0; i < 256; ++i) {
    const int e = i > 128 ? i - 256 : i;
    table[i] = e >= -1 && e <= kMostGelu ? 1 : 0;
  }
  const WordTable tables[] = {{table, 1}};
  return bit_at(evaluator, lookup_words(evaluator, tables, a.exponent, 8)[0], 0);
}

}  // namespace

FloatShares gelu_of(functions::Evaluator& evaluator, const FloatShares& a) {
  const i64 n = evaluator.n;
  // Two bits to spare: t with 32 fraction bits has one on top.
  const ShiftedMantissa shifted =
      shift_mantissa(evaluator, a, {kLeastGelu, kMostGelu, kGeluBits + 1});
  const functions::RingShares t = evaluator.truncate_reduce(shifted.x, kGeluBits + 1, 19);
  const functions::RingShares rough = evaluator.truncate_reduce(t, 37, 4);
  const functions::RingShares index =
      evaluator.map(n, 33, [&](i64 i) { return rough[i] + (u64{a.sign[i]} << 32); });
  const functions::RingShares y = spline(evaluator, kGelu, index);
  const PowerShares power = natural_power(evaluator, minus_half_square(evaluator, t), 0);

  const twopc::FactorFormat factor{kSplineBits, false, true}, mantissa{24, false, false, true};
  const functions::RingShares small =
      multiply_and_cut(evaluator, power.v, factor, y, factor, kResultBits, 28);
  const functions::RingShares plain =
      multiply_and_cut(evaluator, a.mantissa, mantissa, y, factor, kResultBits, 23);
  const functions::BitShares both =
      evaluator.and_bits(functions::joined(half_or_more(evaluator, a), shifted.large),
                         functions::joined(a.sign, a.sign));
  const functions::BitShares tail = functions::part_of(both, n, 0),
                             gone = functions::part_of(both, n, 1);

  const functions::RingShares sign = evaluator.to_ring(a.sign, kExponentBits);
  const u64 one = evaluator.constant(1);
  functions::RingShares to_tail = evaluator.ring(2 * n);
  const functions::RingShares wide = evaluator.extend_known_msb(a.mantissa, 24, 1, kResultBits - 6);
  const functions::RingShares to_large =
      evaluator.map(n, kResultBits, [&](i64 i) { return (wide[i] << 6) - plain[i]; });
  const functions::RingShares e =
      evaluator.map(n, kExponentBits, [&](i64 i) { return a.exponent[i] - one - sign[i]; });
  evaluator.local(n, [&](i64 i) {
    to_tail[2 * i] = small[i] - plain[i];
    to_tail[2 * i + 1] = power.exponent[i] - 2 * one - e[i];
  });
  const functions::Selected chosen =
      evaluator.select({{tail, to_tail, 2, kResultBits}, {shifted.large, to_large, 1, kResultBits}},
                       {{gone, kExponentBits}});
  const functions::RingShares v = evaluator.map(n, kResultBits, [&](i64 i) {
    return plain[i] + chosen.selections[0][2 * i] + chosen.selections[1][i];
  });
  const functions::RingShares exponent = evaluator.map(n, kExponentBits, [&](i64 i) {
    return e[i] + chosen.selections[0][2 * i + 1] - kBeyond * chosen.conversions[0][i];
  });
  FloatShares out = finish_by_exponent(evaluator, round_result(evaluator, exponent, v));
  out.sign = a.sign;
  return out;
}

}  // namespace privml::floating
