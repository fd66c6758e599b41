// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/sine.h"

#include <algorithm>
#include <vector>

#include "functions/fixed/evaluation.h"
#include "functions/fixed/piecewise.h"
#include "twopc/width/extension.h"
#include "twopc/width/truncation.h"

namespace privml {
namespace {

constexpr u64 kInverseTwoPi[] = {
#include "functions/fixed/tables/inverse_two_pi.inc"
};
using Words = std::vector<u64>;

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

u64 half_unit(const Plan& p) { return p.drop > 0 ? u64{1} << (p.drop - 1) : 0; }

void run_chunk(Party& party, const Plan& p, std::span<const u64> x, std::span<u64> y) {
  const bool first = party.rank == 0;
  Words angle(x.begin(), x.end()), sum(x.size());
  if (p.angle.bits > p.in.bits) sign_extend(party, x, p.in.bits, p.angle.bits, angle);
  for (u64& word : angle) word = word * p.angle.factor + (first ? p.start : 0);
  const int cut = p.angle.bits - p.kept_bits;
  if (cut > 0) truncate_reduce(party, angle, p.angle.bits, cut, angle);
  piecewise(party, p.table, angle, sum);
  if (first) {
    for (u64& word : sum) word += half_unit(p);
  }
  truncate_reduce(party, sum, p.table.shape.ring_bits, p.drop, y);
}

void cost_chunk(CostMeter& meter, const Plan& p, i64 n) {
  if (p.angle.bits > p.in.bits) cost_extend(meter, n, p.in.bits, p.angle.bits);
  cost_truncate_reduce(meter, n, p.angle.bits, p.angle.bits - p.kept_bits);
  cost_piecewise(meter, n, p.table);
  cost_truncate_reduce(meter, n, p.table.shape.ring_bits, p.drop);
}

i64 clear_value(const Plan& p, i64 x) {
  const u64 angle = (static_cast<u64>(x) * p.angle.factor + p.start) & low_mask(p.angle.bits);
  const u64 kept = angle >> (p.angle.bits - p.kept_bits);
  u64 sum = 0;
  clear_piecewise(p.table, {&kept, 1}, {&sum, 1});
  return to_signed(((sum + half_unit(p)) & low_mask(p.table.shape.ring_bits)) >> p.drop,
                   p.out.bits);
}

void run(Party& party, bool cosine, std::span<const u64> x, FixedFormat in, FixedFormat out,
         std::span<u64> y) {
  run_function(party, *plan(cosine, in, out), x, y, run_chunk, cost_chunk);
}

void cost(CostMeter& meter, i64 count, bool cosine, FixedFormat in, FixedFormat out) {
  cost_function(meter, count, *plan(cosine, in, out), cost_chunk);
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
void sin(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out, std::span<u64> y) {
  run(party, false, x, in, out, y);
}
void clear_sin(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear(false, x, in, out, y);
}
void cost_sin(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out) {
  cost(meter, count, false, in, out);
}

void cos(Party& party, std::span<const u64> x, FixedFormat in, FixedFormat out, std::span<u64> y) {
  run(party, true, x, in, out, y);
}
void clear_cos(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear(true, x, in, out, y);
}
void cost_cos(CostMeter& meter, i64 count, FixedFormat in, FixedFormat out) {
  cost(meter, count, true, in, out);
}

}  // namespace privml
