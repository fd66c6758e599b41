// SPDX-License-Identifier: Apache-2.0
#include "secfloat/sigmoid.h"

namespace privml {

FloatShares sigmoid_of(Steps& steps, const FloatShares& a) {
  const i64 n = steps.n;
  const FixedMagnitude t = fixed_magnitude(steps, a, kExponentScale);
  const RingShares minus = steps.map(n, kReductionBits, [&](i64 i) { return u64{0} - t.wide[i]; });
  const PowerShares power = natural_power(steps, minus, 0);
  const RingShares place =
      steps.truncate_reduce(t.magnitude, kExponentScale + 7, kExponentScale - 28);
  const RingShares ratio = spline(steps, kLogistic, place);
  const FactorFormat factor{kSplineBits, false, true};
  const RingShares small = multiply_and_cut(steps, power.v, factor, ratio, factor, kResultBits, 28);

  RingShares changes = steps.ring(2 * n);
  steps.local(n, [&](i64 i) {
    changes[2 * i] = small[i] - ratio[i];
    changes[2 * i + 1] = power.exponent[i];
  });
  constexpr int kExponentBits = kFloat32.exponent_bits();
  const Selected chosen =
      steps.select({{a.sign, changes, 2, kResultBits}}, {{a.sign, kExponentBits}});
  const RingShares& change = chosen.selections[0];
  const u64 one = steps.constant(1);
  const RingShares v = steps.map(n, kResultBits, [&](i64 i) { return ratio[i] + change[2 * i]; });
  const RingShares e = steps.map(n, kExponentBits, [&](i64 i) { return change[2 * i + 1] - one; });
  // Beyond the range both are those of 1/2.
  const RingShares end =
      steps.map(n, kExponentBits, [&](i64 i) { return one - kBeyond * chosen.conversions[0][i]; });
  const RingShares to_end = steps.select(t.large, end, kExponentBits);
  FloatShares r = round_result(steps, e, v);
  r.exponent = steps.map(n, kExponentBits, [&](i64 i) { return r.exponent[i] + to_end[i]; });
  return finish_by_exponent(steps, r);
}

void float_sigmoid(Party& party, FloatView a, FloatSpan out) {
  run_function(party, a, out, sigmoid_of);
}
void cost_float_sigmoid(CostMeter& meter, i64 n) { cost_function(meter, n, sigmoid_of); }

}  // namespace privml
