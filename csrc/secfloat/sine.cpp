// SPDX-License-Identifier: Apache-2.0
#include "secfloat/sine.h"

#include "secfloat/reduction.h"

namespace privml {
namespace {

constexpr int kFold = kTurnBits - 2;

FloatShares sine_steps(Steps& steps, const FloatShares& a, bool cosine) {
  const i64 n = steps.n;
  const ShiftedMantissa shifted = shift_mantissa(steps, a, {kLeastTurn, kMostTurn, kTurnBits});
  const u64 start = steps.constant(cosine ? u64{1} << kFold : 0);
  const RingShares x = steps.map(n, kTurnBits, [&](i64 i) { return shifted.x[i] + start; });
  const Steps::Split turn = steps.split_number(x, kTurnBits, kFold, kFold + 1);
  const BitShares half = steps.most_significant_bit(turn.high, 2);
  const FoldedTurn folded = fold_turn(steps, turn.high, turn.low, kFold);

  const NormalizedMantissa distance = normalize_mantissa(steps, folded.f, kFold + 1, kFold + 1);
  RingShares d = steps.truncate_reduce(distance.mantissa, kFold + 1, kFold + 1 - 29);
  const u64 scale = steps.constant(kTurnBits - 1);
  RingShares e = steps.map(n, 10, [&](i64 i) { return distance.place[i] - scale; });
  BitShares zero = distance.zero;
  if (!cosine) {
    take_small(steps, a, shifted.small, kTurnBits - 1, d, e);
    zero = without(steps, zero, shifted.small);
  }
  const RingShares p = spline(steps, kSine, steps.truncate_reduce(folded.index, kFold, kFold - 28));
  const RingShares v = multiply_and_cut(steps, d, {29, false, false, true}, p,
                                        {kSplineBits, false, true}, kResultBits, 29);
  FloatShares out = finish_result(steps, round_result(steps, e, v), zero);
  out.sign = cosine
                 ? half
                 : steps.map_bits(n, [&](i64 i) { return static_cast<u8>(half[i] ^ a.sign[i]); });
  return out;
}

}  // namespace

FloatShares sin_pi_of(Steps& steps, const FloatShares& a) { return sine_steps(steps, a, false); }
FloatShares cos_pi_of(Steps& steps, const FloatShares& a) { return sine_steps(steps, a, true); }

void float_sin_pi(Party& party, FloatView a, FloatSpan out) {
  run_function(party, a, out, sin_pi_of);
}
void cost_float_sin_pi(CostMeter& meter, i64 n) { cost_function(meter, n, sin_pi_of); }
void float_cos_pi(Party& party, FloatView a, FloatSpan out) {
  run_function(party, a, out, cos_pi_of);
}
void cost_float_cos_pi(CostMeter& meter, i64 n) { cost_function(meter, n, cos_pi_of); }

}  // namespace privml
