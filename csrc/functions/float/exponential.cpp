// SPDX-License-Identifier: Apache-2.0
#include "functions/float/exponential.h"

#include "functions/float/reduction.h"

namespace privml::floating {
namespace {

constexpr int kExponentBits = kFloat32.exponent_bits();

// x or -x, in Z_{2^bits}.
functions::RingShares signed_by(functions::Evaluator& evaluator, const functions::BitShares& sign,
                                const functions::RingShares& x, int bits) {
  const functions::RingShares change =
      evaluator.map(evaluator.n, bits, [&](i64 i) { return u64{0} - 2 * x[i]; });
  const functions::RingShares changed = evaluator.select(sign, change, bits);
  return evaluator.map(evaluator.n, bits, [&](i64 i) { return x[i] + changed[i]; });
}

// 2^exponent * v / 2^28, and the ends of the range if a is beyond it.
FloatShares power_result(functions::Evaluator& evaluator, const FloatShares& a,
                         const functions::BitShares& large, const functions::RingShares& exponent,
                         const functions::RingShares& v) {
  const i64 n = evaluator.n;
  const u64 end = evaluator.constant(kBeyond);
  const functions::RingShares sign = evaluator.to_ring(a.sign, kExponentBits);
  const functions::RingShares beyond = evaluator.map(
      n, kExponentBits, [&](i64 i) { return end - 2 * kBeyond * sign[i] - exponent[i]; });
  const functions::RingShares change = evaluator.select(large, beyond, kExponentBits);
  FloatShares r = round_result(evaluator, exponent, v);
  r.exponent = evaluator.map(n, kExponentBits, [&](i64 i) { return r.exponent[i] + change[i]; });
  return finish_by_exponent(evaluator, r);
}

}  // namespace

FloatShares exp2_of(functions::Evaluator& evaluator, const FloatShares& a) {
  constexpr int kScale = 28, kBits = kScale + kExponentBits, kDrop = kPowerScale - kScale;
  const Spline& f = kExponentialOfTwo;
  const ShiftedMantissa shifted =
      shift_mantissa(evaluator, a, {kLeastPower, kMostPower, kBits + kDrop});
  const functions::RingShares magnitude =
      evaluator.truncate_reduce(shifted.x, kBits + kDrop, kDrop);
  const functions::RingShares x = signed_by(evaluator, a.sign, magnitude, kBits);
  const functions::Evaluator::Split parts =
      evaluator.split_number(x, kBits, f.place_bits, spline_place_ring(f));
  const functions::RingShares v = spline_at(evaluator, f, parts.high, parts.low);
  const functions::RingShares exponent =
      evaluator.truncate_reduce(parts.high, kBits - f.place_bits, f.index_bits);
  return power_result(evaluator, a, shifted.large, exponent, v);
}

FixedMagnitude fixed_magnitude(functions::Evaluator& evaluator, const FloatShares& a, int scale) {
  const int bits = scale + 8, drop = kPowerScale - scale;  // a bit to spare
  const ShiftedMantissa shifted =
      shift_mantissa(evaluator, a, {kLeastPower, kMostPower, bits + drop});
  const functions::RingShares magnitude = evaluator.truncate_reduce(shifted.x, bits + drop, drop);
  return {magnitude, evaluator.extend_nonnegative(magnitude, bits, kReductionBits), shifted.large};
}

PowerShares natural_power(functions::Evaluator& evaluator, const functions::RingShares& x,
                          i64 bias) {
  const i64 n = evaluator.n;
  const u64 below = evaluator.constant(static_cast<u64>(bias));
  const functions::RingShares product =
      evaluator.map(n, kReductionBits, [&](i64 i) { return x[i] * kLogarithmOfE - below; });
  PowerShares out;
  out.exponent =
      evaluator.truncate_reduce(product, kReductionBits, kExponentScale + kLogarithmScale);
  const functions::RingShares whole =
      evaluator.extend_bounded(out.exponent, kExponentBits, 256, kExponentScale);
  const functions::RingShares rest =
      evaluator.map(n, kExponentScale, [&](i64 i) { return x[i] - whole[i] * kNaturalOfTwo; });
  out.v = spline(evaluator, kExponential,
                 evaluator.truncate_reduce(rest, kExponentScale, kExponentScale - 28));
  return out;
}

FloatShares exp_of(functions::Evaluator& evaluator, const FloatShares& a) {
  const FixedMagnitude magnitude = fixed_magnitude(evaluator, a, kExponentScale);
  const functions::RingShares x = signed_by(evaluator, a.sign, magnitude.wide, kReductionBits);
  const PowerShares power = natural_power(evaluator, x, kReductionBias);
  return power_result(evaluator, a, magnitude.large, power.exponent, power.v);
}

}  // namespace privml::floating
