// SPDX-License-Identifier: Apache-2.0
#include "secfloat/tangent.h"

#include "secfloat/reduction.h"

namespace privml {
namespace {

constexpr int kTurn = 37;  // fraction bits of |a| mod 1
constexpr int kFold = kTurn - 2;
constexpr int kFactor = 29;  // bits of the normalised distance

}  // namespace

FloatShares tan_pi_of(Steps& steps, const FloatShares& a) {
  const i64 n = steps.n;
  const ShiftedMantissa shifted = shift_mantissa(steps, a, {-14, 22, kTurn});
  const Steps::Split turn = steps.split_number(shifted.x, kTurn, kFold, kFold + 1);
  const BitShares negative = steps.most_significant_bit(turn.high, 2);
  const FoldedTurn folded = fold_turn(steps, turn.high, turn.low, kFold);
  const BitShares inverse =
      steps.map_bits(n, [&](i64 i) { return static_cast<u8>(negative[i] ^ folded.fold[i]); });

  const NormalizedMantissa distance = normalize_mantissa(steps, folded.f, kFold + 1, kFold + 1);
  RingShares d = steps.truncate_reduce(distance.mantissa, kFold + 1, kFold + 1 - kFactor);
  const u64 scale = steps.constant(kTurn), two = steps.constant(2);
  RingShares e = steps.map(n, 10, [&](i64 i) { return distance.place[i] - scale; });
  take_small(steps, a, shifted.small, kTurn, d, e);
  const BitShares none = without(steps, distance.zero, shifted.small);
  const BitShares zero = without(steps, none, inverse);
  const BitShares infinite =
      steps.map_bits(n, [&](i64 i) { return static_cast<u8>(none[i] ^ zero[i]); });

  // The cells of 1 / tan are the upper half; a top bit is shared alike by XOR.
  const RingShares index =
      steps.map(n, kFold + 1, [&](i64 i) { return folded.index[i] + (u64{inverse[i]} << kFold); });
  const RingShares y =
      spline(steps, kTangent, steps.truncate_reduce(index, kFold + 1, kFold + 1 - 29));
  const RingShares reciprocal =
      spline(steps, kReciprocal, d);  // of whose bits the leading one drops out
  RingShares changes = steps.ring(2 * n);
  steps.local(n, [&](i64 i) {
    changes[2 * i] = reciprocal[i] - d[i];
    changes[2 * i + 1] = u64{0} - two - 2 * e[i];
  });
  const RingShares chosen = steps.select(inverse, changes, kFactor);
  const RingShares factor = steps.map(n, kFactor, [&](i64 i) { return d[i] + chosen[2 * i]; });
  const RingShares exponent = steps.map(n, 10, [&](i64 i) { return e[i] + chosen[2 * i + 1]; });
  const RingShares v = multiply_and_cut(steps, factor, {kFactor, false, false, true}, y,
                                        {kSplineBits, false, true}, kResultBits, 28);
  FloatShares out = finish_result(steps, round_result(steps, exponent, v), zero, &infinite);
  out.sign = steps.map_bits(n, [&](i64 i) { return static_cast<u8>(negative[i] ^ a.sign[i]); });
  return out;
}

void float_tan_pi(Party& party, FloatView a, FloatSpan out) {
  run_function(party, a, out, tan_pi_of);
}
void cost_float_tan_pi(CostMeter& meter, i64 n) { cost_function(meter, n, tan_pi_of); }

}  // namespace privml
