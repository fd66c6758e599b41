// SPDX-License-Identifier: Apache-2.0
#include "functions/float/tangent.h"

#include "functions/float/reduction.h"

namespace privml::floating {
namespace {

constexpr int kAngleBits = 37;  // fraction bits of |a| mod 1
constexpr int kFold = kAngleBits - 2;
constexpr int kFactor = 29;  // bits of the normalised distance

}  // namespace

FloatShares tan_pi_of(functions::Evaluator& evaluator, const FloatShares& a) {
  const i64 n = evaluator.n;
  const ShiftedMantissa shifted = shift_mantissa(evaluator, a, {-14, 22, kAngleBits});
  const functions::Evaluator::Split angle =
      evaluator.split_number(shifted.x, kAngleBits, kFold, kFold + 1);
  const functions::BitShares negative = evaluator.most_significant_bit(angle.high, 2);
  const FoldedAngle folded = fold_angle(evaluator, angle.high, angle.low, kFold);
  const functions::BitShares inverse =
      evaluator.map_bits(n, [&](i64 i) { return static_cast<u8>(negative[i] ^ folded.fold[i]); });

  const NormalizedMantissa distance = normalize_mantissa(evaluator, folded.f, kFold + 1, kFold + 1);
  functions::RingShares d =
      evaluator.truncate_reduce(distance.mantissa, kFold + 1, kFold + 1 - kFactor);
  const u64 scale = evaluator.constant(kAngleBits), two = evaluator.constant(2);
  functions::RingShares e = evaluator.map(n, 10, [&](i64 i) { return distance.place[i] - scale; });
  take_small(evaluator, a, shifted.small, kAngleBits, d, e);
  const functions::BitShares none = without(evaluator, distance.zero, shifted.small);
  const functions::BitShares zero = without(evaluator, none, inverse);
  const functions::BitShares infinite =
      evaluator.map_bits(n, [&](i64 i) { return static_cast<u8>(none[i] ^ zero[i]); });

  // The cells of 1 / tan are the upper half; an additive share of a top bit
  // is also an XOR share.
  const functions::RingShares index = evaluator.map(
      n, kFold + 1, [&](i64 i) { return folded.index[i] + (u64{inverse[i]} << kFold); });
  const functions::RingShares y =
      spline(evaluator, kTangent, evaluator.truncate_reduce(index, kFold + 1, kFold + 1 - 29));
  const functions::RingShares reciprocal =
      spline(evaluator, kReciprocal, d);  // of whose bits the leading one drops out
  functions::RingShares changes = evaluator.ring(2 * n);
  evaluator.local(n, [&](i64 i) {
    changes[2 * i] = reciprocal[i] - d[i];
    changes[2 * i + 1] = u64{0} - two - 2 * e[i];
  });
  const functions::RingShares chosen = evaluator.select(inverse, changes, kFactor);
  const functions::RingShares factor =
      evaluator.map(n, kFactor, [&](i64 i) { return d[i] + chosen[2 * i]; });
  const functions::RingShares exponent =
      evaluator.map(n, 10, [&](i64 i) { return e[i] + chosen[2 * i + 1]; });
  const functions::RingShares v = multiply_and_cut(evaluator, factor, {kFactor, false, false, true},
                                                   y, {kSplineBits, false, true}, kResultBits, 28);
  FloatShares out = finish_result(evaluator, round_result(evaluator, exponent, v), zero, &infinite);
  out.sign = evaluator.map_bits(n, [&](i64 i) { return static_cast<u8>(negative[i] ^ a.sign[i]); });
  return out;
}

}  // namespace privml::floating
