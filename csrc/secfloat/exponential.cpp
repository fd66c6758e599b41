// SPDX-License-Identifier: Apache-2.0
#include "secfloat/exponential.h"

#include "secfloat/reduction.h"

namespace privml {
namespace {

constexpr int kExponentBits = kFloat32.exponent_bits();

// x or -x, in Z_{2^bits}.
RingShares signed_by(Steps& steps, const BitShares& sign, const RingShares& x, int bits) {
  const RingShares change = steps.map(steps.n, bits, [&](i64 i) { return u64{0} - 2 * x[i]; });
  const RingShares changed = steps.select(sign, change, bits);
  return steps.map(steps.n, bits, [&](i64 i) { return x[i] + changed[i]; });
}

// 2^exponent * v / 2^28, and the ends of the range where a is beyond it.
FloatShares power_result(Steps& steps, const FloatShares& a, const BitShares& large,
                         const RingShares& exponent, const RingShares& v) {
  const i64 n = steps.n;
  const u64 end = steps.constant(kBeyond);
  const RingShares sign = steps.to_ring(a.sign, kExponentBits);
  const RingShares beyond =
      steps.map(n, kExponentBits, [&](i64 i) { return end - 2 * kBeyond * sign[i] - exponent[i]; });
  const RingShares change = steps.select(large, beyond, kExponentBits);
  FloatShares r = round_result(steps, exponent, v);
  r.exponent = steps.map(n, kExponentBits, [&](i64 i) { return r.exponent[i] + change[i]; });
  return finish_by_exponent(steps, r);
}

}  // namespace

FloatShares exp2_of(Steps& steps, const FloatShares& a) {
  constexpr int kScale = 28, kBits = kScale + kExponentBits, kDrop = kPowerScale - kScale;
  const Spline& f = kExponentialOfTwo;
  const ShiftedMantissa shifted =
      shift_mantissa(steps, a, {kLeastPower, kMostPower, kBits + kDrop});
  const RingShares magnitude = steps.truncate_reduce(shifted.x, kBits + kDrop, kDrop);
  const RingShares x = signed_by(steps, a.sign, magnitude, kBits);
  const Steps::Split parts = steps.split_number(x, kBits, f.place_bits, spline_place_ring(f));
  const RingShares v = spline_at(steps, f, parts.high, parts.low);
  const RingShares exponent = steps.truncate_reduce(parts.high, kBits - f.place_bits, f.index_bits);
  return power_result(steps, a, shifted.large, exponent, v);
}

FixedMagnitude fixed_magnitude(Steps& steps, const FloatShares& a, int scale) {
  const int bits = scale + 8, drop = kPowerScale - scale;  // a bit to spare
  const ShiftedMantissa shifted = shift_mantissa(steps, a, {kLeastPower, kMostPower, bits + drop});
  const RingShares magnitude = steps.truncate_reduce(shifted.x, bits + drop, drop);
  return {magnitude, steps.extend_nonnegative(magnitude, bits, kReductionBits), shifted.large};
}

PowerShares natural_power(Steps& steps, const RingShares& x, i64 bias) {
  const i64 n = steps.n;
  const u64 below = steps.constant(static_cast<u64>(bias));
  const RingShares product =
      steps.map(n, kReductionBits, [&](i64 i) { return x[i] * kLogarithmOfE - below; });
  PowerShares out;
  out.exponent = steps.truncate_reduce(product, kReductionBits, kExponentScale + kLogarithmScale);
  const RingShares whole = steps.extend_bounded(out.exponent, kExponentBits, 256, kExponentScale);
  const RingShares rest =
      steps.map(n, kExponentScale, [&](i64 i) { return x[i] - whole[i] * kNaturalOfTwo; });
  out.v =
      spline(steps, kExponential, steps.truncate_reduce(rest, kExponentScale, kExponentScale - 28));
  return out;
}

FloatShares exp_of(Steps& steps, const FloatShares& a) {
  const FixedMagnitude magnitude = fixed_magnitude(steps, a, kExponentScale);
  const RingShares x = signed_by(steps, a.sign, magnitude.wide, kReductionBits);
  const PowerShares power = natural_power(steps, x, kReductionBias);
  return power_result(steps, a, magnitude.large, power.exponent, power.v);
}

void float_exp2(Party& party, FloatView a, FloatSpan out) { run_function(party, a, out, exp2_of); }
void cost_float_exp2(CostMeter& meter, i64 n) { cost_function(meter, n, exp2_of); }
void float_exp(Party& party, FloatView a, FloatSpan out) { run_function(party, a, out, exp_of); }
void cost_float_exp(CostMeter& meter, i64 n) { cost_function(meter, n, exp_of); }

}  // namespace privml
