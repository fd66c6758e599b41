// SPDX-License-Identifier: Apache-2.0
#include "secfloat/exponential.h"

#include "secfloat/reduction.h"

namespace privml {
namespace {

constexpr int kExponentBits = kFloat32.exponent_bits();

// |a| with kPowerScale - drop fraction bits in Z_{2^bits}; `large` where a is beyond the range.
ShiftedMantissa fixed_magnitude(Steps& steps, const FloatShares& a, int drop, int bits) {
  ShiftedMantissa out = shift_mantissa(steps, a, {kLeastPower, kMostPower, bits + drop});
  out.x = steps.truncate_reduce(out.x, bits + drop, drop);
  return out;
}

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
  constexpr int kScale = 28, kBits = kScale + kExponentBits;
  const Spline& f = kExponentialOfTwo;
  const ShiftedMantissa magnitude = fixed_magnitude(steps, a, kPowerScale - kScale, kBits);
  const RingShares x = signed_by(steps, a.sign, magnitude.x, kBits);
  const SplitShares parts = split_shares(steps, x, kBits, f.place_bits, spline_place_ring(f));
  const RingShares v = spline_at(steps, f, parts.high, parts.low);
  const RingShares exponent = steps.truncate_reduce(parts.high, kBits - f.place_bits, f.index_bits);
  return power_result(steps, a, magnitude.large, exponent, v);
}

FloatShares exp_of(Steps& steps, const FloatShares& a) {
  constexpr int kMagnitude = kExponentScale + kMostPower + 2;  // a bit to spare
  constexpr int kProduct = kExponentScale + kLogarithmScale + kExponentBits;
  const i64 n = steps.n;
  const ShiftedMantissa magnitude =
      fixed_magnitude(steps, a, kPowerScale - kExponentScale, kMagnitude);
  const RingShares x = signed_by(
      steps, a.sign, steps.extend_nonnegative(magnitude.x, kMagnitude, kProduct), kProduct);
  const u64 bias = steps.constant(kReductionBias);
  const RingShares product =
      steps.map(n, kProduct, [&](i64 i) { return x[i] * kLogarithmOfE - bias; });
  const RingShares exponent =
      steps.truncate_reduce(product, kProduct, kExponentScale + kLogarithmScale);
  const RingShares whole = steps.extend_bounded(exponent, kExponentBits, 256, kExponentScale);
  const RingShares rest =
      steps.map(n, kExponentScale, [&](i64 i) { return x[i] - whole[i] * kNaturalOfTwo; });
  const RingShares v =
      spline(steps, kExponential, steps.truncate_reduce(rest, kExponentScale, kExponentScale - 28));
  return power_result(steps, a, magnitude.large, exponent, v);
}

void float_exp2(Party& party, FloatView a, FloatSpan out) { run_function(party, a, out, exp2_of); }
void cost_float_exp2(CostMeter& meter, i64 n) { cost_function(meter, n, exp2_of); }
void float_exp(Party& party, FloatView a, FloatSpan out) { run_function(party, a, out, exp_of); }
void cost_float_exp(CostMeter& meter, i64 n) { cost_function(meter, n, exp_of); }

}  // namespace privml
