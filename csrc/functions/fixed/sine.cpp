// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/sine.h"

#include <algorithm>

#include "functions/fixed/evaluation.h"
#include "functions/fixed/piecewise.h"

namespace privml::fixed {
namespace {

constexpr u64 kInverseTwoPi[] = {
#include "functions/fixed/tables/inverse_two_pi.inc"
};

struct Plan {
  FixedFormat in, out;
  AngleReduction angle;  // of the product
  int kept_bits;         // of the fraction that the polynomial sees
  u64 start;             // sine: 0, cosine: a quarter rotation; with half a unit for rounding
  Piecewise table;
  int drop;
};

Plan make_plan(bool cosine, FixedFormat in, FixedFormat out) {
  expect_formats(in, out, cosine ? "cos" : "sin");
  Plan p{in, out, angle_reduction(in, out), 0, 0, {}, 0};
  p.kept_bits = std::min(out.scale + kAngleGuard, p.angle.bits);
  const int cut = p.angle.bits - p.kept_bits;
  p.start = (cosine ? u64{1} << (p.angle.bits - 2) : 0) + (cut > 0 ? u64{1} << (cut - 1) : 0);
  const PiecewiseShape shape =
      choose_piecewise({Series::sine, p.kept_bits, p.kept_bits, out.scale + kPolynomialPrecision,
                        out.scale + kCoefficientGuard, out.bits + kCoefficientGuard});
  const int length = kPlaceScale + shape.place_bits - p.kept_bits;  // 2^length is a cell
  p.table = make_piecewise(shape, [&](i64 cell, u64 v) {
    return series_value(Series::sine, (static_cast<u64>(cell) << length) +
                                          static_cast<u64>((u128{v} << length) >> kPlaceScale));
  });
  p.drop = result_scale(shape) - out.scale;
  return p;
}

std::shared_ptr<const Plan> plan(bool cosine, FixedFormat in, FixedFormat out) {
  static PlanCache<Plan> plans;
  return plans.get(cosine ? 1 : 0, in, out, [&] { return make_plan(cosine, in, out); });
}

functions::RingShares sine(functions::Evaluator& evaluator, bool cosine,
                           const functions::RingShares& x, FixedFormat in, FixedFormat out) {
  const auto p = plan(cosine, in, out);
  const int bits = p->angle.bits, ring = p->table.shape.ring_bits;
  const functions::RingShares wide = bits > in.bits ? evaluator.extend_signed(x, in.bits, bits) : x;
  const u64 start = evaluator.constant(p->start);
  const functions::RingShares angle =
      evaluator.map(x.count, bits, [&](i64 i) { return wide[i] * p->angle.factor + start; });
  const functions::RingShares sum =
      piecewise(evaluator, p->table, evaluator.truncate_reduce(angle, bits, bits - p->kept_bits));
  return evaluator.round_off(sum, ring, p->drop);
}

i64 clear_value(const Plan& p, i64 x) {
  const u64 angle = (static_cast<u64>(x) * p.angle.factor + p.start) & low_mask(p.angle.bits);
  const u64 kept = angle >> (p.angle.bits - p.kept_bits);
  u64 sum = 0;
  clear_piecewise(p.table, {&kept, 1}, {&sum, 1});
  return to_signed(
      ((sum + functions::half_of(p.drop)) & low_mask(p.table.shape.ring_bits)) >> p.drop,
      p.out.bits);
}

void clear(bool cosine, std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear_function(*plan(cosine, in, out), in, x, y, clear_value);
}

}  // namespace

AngleReduction angle_reduction(FixedFormat in, FixedFormat out) {
  const int bits = std::clamp(in.bits + out.scale + kAngleGuard, in.scale + 1, 64);
  const int fraction = bits - in.scale;
  if (fraction == 64) return {bits, kInverseTwoPi[0]};
  const u128 half = u128{1} << (63 - fraction);
  return {bits, static_cast<u64>((u128{kInverseTwoPi[0]} + half) >> (64 - fraction))};
}
functions::RingShares sin(functions::Evaluator& evaluator, const functions::RingShares& x,
                          FixedFormat in, FixedFormat out) {
  return sine(evaluator, false, x, in, out);
}
void clear_sin(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear(false, x, in, out, y);
}

functions::RingShares cos(functions::Evaluator& evaluator, const functions::RingShares& x,
                          FixedFormat in, FixedFormat out) {
  return sine(evaluator, true, x, in, out);
}
void clear_cos(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear(true, x, in, out, y);
}

}  // namespace privml::fixed
