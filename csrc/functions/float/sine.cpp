// SPDX-License-Identifier: Apache-2.0
#include "functions/float/sine.h"

#include "functions/float/reduction.h"

namespace privml::floating {
namespace {

constexpr int kFold = kAngleBits - 2;

FloatShares sine_or_cosine(functions::Evaluator& evaluator, const FloatShares& a, bool cosine) {
  const i64 n = evaluator.n;
  const ShiftedMantissa shifted =
      shift_mantissa(evaluator, a, {kLeastAngleExponent, kMostAngleExponent, kAngleBits});
  const u64 start = evaluator.constant(cosine ? u64{1} << kFold : 0);
  const functions::RingShares x =
      evaluator.map(n, kAngleBits, [&](i64 i) { return shifted.x[i] + start; });
  const functions::Evaluator::Split angle = evaluator.split_number(x, kAngleBits, kFold, kFold + 1);
  const functions::BitShares half = evaluator.most_significant_bit(angle.high, 2);
  const FoldedAngle folded = fold_angle(evaluator, angle.high, angle.low, kFold);

  const NormalizedMantissa distance = normalize_mantissa(evaluator, folded.f, kFold + 1, kFold + 1);
  functions::RingShares d = evaluator.truncate_reduce(distance.mantissa, kFold + 1, kFold + 1 - 29);
  const u64 scale = evaluator.constant(kAngleBits - 1);
  functions::RingShares e = evaluator.map(n, 10, [&](i64 i) { return distance.place[i] - scale; });
  functions::BitShares zero = distance.zero;
  if (!cosine) {
    take_small(evaluator, a, shifted.small, kAngleBits - 1, d, e);
    zero = without(evaluator, zero, shifted.small);
  }
  const functions::RingShares p =
      spline(evaluator, kSine, evaluator.truncate_reduce(folded.index, kFold, kFold - 28));
  const functions::RingShares v = multiply_and_cut(evaluator, d, {29, false, false, true}, p,
                                                   {kSplineBits, false, true}, kResultBits, 29);
  FloatShares out = finish_result(evaluator, round_result(evaluator, e, v), zero);
  out.sign =
      cosine ? half
             : evaluator.map_bits(n, [&](i64 i) { return static_cast<u8>(half[i] ^ a.sign[i]); });
  return out;
}

}  // namespace

FloatShares sin_pi_of(functions::Evaluator& evaluator, const FloatShares& a) {
  return sine_or_cosine(evaluator, a, false);
}
FloatShares cos_pi_of(functions::Evaluator& evaluator, const FloatShares& a) {
  return sine_or_cosine(evaluator, a, true);
}

}  // namespace privml::floating
