// SPDX-License-Identifier: Apache-2.0
#include "functions/float/sigmoid.h"

namespace privml::floating {

FloatShares sigmoid_of(functions::Evaluator& evaluator, const FloatShares& a) {
  const i64 n = evaluator.n;
  const FixedMagnitude t = fixed_magnitude(evaluator, a, kExponentScale);
  const functions::RingShares minus =
      evaluator.map(n, kReductionBits, [&](i64 i) { return u64{0} - t.wide[i]; });
  const PowerShares power = natural_power(evaluator, minus, 0);
  const functions::RingShares place =
      evaluator.truncate_reduce(t.magnitude, kExponentScale + 7, kExponentScale - 28);
  const functions::RingShares ratio = spline(evaluator, kLogistic, place);
  const twopc::FactorFormat factor{kSplineBits, false, true};
  const functions::RingShares small =
      multiply_and_cut(evaluator, power.v, factor, ratio, factor, kResultBits, 28);

  functions::RingShares changes = evaluator.ring(2 * n);
  evaluator.local(n, [&](i64 i) {
    changes[2 * i] = small[i] - ratio[i];
    changes[2 * i + 1] = power.exponent[i];
  });
  constexpr int kExponentBits = kFloat32.exponent_bits();
  const functions::Selected chosen =
      evaluator.select({{a.sign, changes, 2, kResultBits}}, {{a.sign, kExponentBits}});
  const functions::RingShares& change = chosen.selections[0];
  const u64 one = evaluator.constant(1);
  const functions::RingShares v =
      evaluator.map(n, kResultBits, [&](i64 i) { return ratio[i] + change[2 * i]; });
  const functions::RingShares e =
      evaluator.map(n, kExponentBits, [&](i64 i) { return change[2 * i + 1] - one; });
  // Beyond the range both are those of 1/2.
  const functions::RingShares end = evaluator.map(
      n, kExponentBits, [&](i64 i) { return one - kBeyond * chosen.conversions[0][i]; });
  const functions::RingShares to_end = evaluator.select(t.large, end, kExponentBits);
  FloatShares r = round_result(evaluator, e, v);
  r.exponent = evaluator.map(n, kExponentBits, [&](i64 i) { return r.exponent[i] + to_end[i]; });
  return finish_by_exponent(evaluator, r);
}

}  // namespace privml::floating
