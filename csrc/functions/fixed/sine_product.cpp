// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/sine_product.h"

#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "functions/fixed/evaluation.h"
#include "functions/fixed/piecewise.h"
#include "functions/fixed/sine.h"
#include "twopc/product/addition_formula.h"
#include "twopc/width/bounded.h"
#include "twopc/width/extension.h"
#include "twopc/width/truncation.h"

namespace privml::fixed {
namespace {

using i128 = __int128;

constexpr int kGuard = 4;           // bits of the factors below the last place
constexpr double kDropped = 0.125;  // units that dropped bits may amount to
constexpr int kSeenBits = 44;       // of the angle, from which sines are computed
constexpr int kLeastTable = 3, kMostTable = 5;

// A point of the unit circle, of scale 56.
struct Point {
  i64 sine, cosine;
};

i64 times(i64 a, i64 b) { return static_cast<i64>((i128{a} * b) >> kValueScale); }

Point rotated(Point p, Point by) {
  return {times(p.sine, by.cosine) + times(p.cosine, by.sine),
          times(p.cosine, by.cosine) - times(p.sine, by.sine)};
}

// At the angle 2 pi place / 2^48.
Point point_at(u64 place) {
  const u64 mask = low_mask(kPlaceScale), quarter = u64{1} << (kPlaceScale - 2);
  return {series_value(Series::sine, place & mask),
          series_value(Series::sine, (place + quarter) & mask)};
}

// The point of an angle, one rotation per bit: no branch or address depends on the angle.
struct Rotations {
  int skipped;  // low bits that do not matter
  std::vector<Point> of_bit;

  Point operator()(u64 angle) const {
    Point p{0, i64{1} << kValueScale};
    for (std::size_t k = 0; k < of_bit.size(); ++k) {
      const Point next = rotated(p, of_bit[k]);
      const i64 mask = -static_cast<i64>(angle >> (skipped + static_cast<int>(k)) & 1);
      p.sine ^= (p.sine ^ next.sine) & mask;
      p.cosine ^= (p.cosine ^ next.cosine) & mask;
    }
    return p;
  }
};

Rotations make_rotations(int bits) {
  Rotations r{std::max(bits - kSeenBits, 0), {}};
  for (int k = r.skipped; k < bits; ++k) {
    const int place = kPlaceScale - bits + k;
    r.of_bit.push_back(point_at(u64{1} << place));
  }
  return r;
}

u64 rounded(i64 value, int scale) {
  const int drop = kValueScale - scale;
  return static_cast<u64>((value + (i64{1} << (drop - 1))) >> drop);
}

struct Plan {
  FixedFormat in, out;
  AngleReduction angle;
  u64 start;  // sine: 0, cosine: a quarter rotation
  twopc::AdditionFormula formula;
  int shift;
};

// f_i(u) for all digits of the other party: the own point, rotated by each.
twopc::AdditionTerm make_term(int bits, int table_bits, int scale, bool cosine) {
  const Rotations rotations = make_rotations(bits);
  std::vector<Point> digits(i64{1} << table_bits);
  for (u64 j = 0; j < digits.size(); ++j) digits[j] = point_at(j << (kPlaceScale - table_bits));
  twopc::AdditionTerm term;
  term.values = [=](i64, u64 share, std::span<u64> entries) {
    const Point own = rotations(share);
    for (std::size_t j = 0; j < entries.size(); ++j) {
      const Point p = rotated(own, digits[j]);
      entries[j] = rounded(cosine ? p.cosine : p.sine, scale);
    }
  };
  return term;
}

// sin u cos b + cos u sin b, with cos b as 1 less what is small.
twopc::AdditionFormula make_formula(int bits, int table_bits, int scale) {
  const int place_bits = bits - table_bits;
  twopc::AdditionFormula f{bits, place_bits, scale + 3, false, 2 * scale + 3, 0, {}};
  f.terms = {make_term(bits, table_bits, scale, false), make_term(bits, table_bits, scale, true)};
  const Rotations rotations = make_rotations(bits);
  f.terms[0].constant = u64{1} << scale;
  f.terms[0].negative = true;
  f.terms[0].factor = [=](i64, u64 b) {
    return (u64{1} << scale) - rounded(rotations(b).cosine, scale);
  };
  f.terms[1].factor = [=](i64, u64 b) { return rounded(rotations(b).sine, scale); };
  for (twopc::AdditionTerm& term : f.terms)
    term.factor_bits = std::bit_width(term.factor(0, low_mask(place_bits)) + 1);
  return f;
}

Plan make_plan(bool cosine, FixedFormat in, FixedFormat out) {
  expect_formats(in, out, cosine ? "cos_product" : "sin_product");
  Plan best{in, out, angle_reduction(in, out), 0, {}, 0};
  best.start = cosine ? u64{1} << (best.angle.bits - 2) : 0;
  const int scale = out.scale + kGuard, fraction = 2 * scale - out.scale;
  i64 fewest = 0;
  for (int table_bits = kLeastTable; table_bits <= kMostTable; ++table_bits) {
    if (best.angle.bits <= table_bits) break;
    twopc::AdditionFormula f = make_formula(best.angle.bits, table_bits, scale);
    for (twopc::AdditionFormula less = f; less.dropped < fraction - 1; f = less) {
      ++less.dropped;
      if (std::ldexp(twopc::dropped_error(less), less.dropped - fraction) > kDropped) break;
    }
    const i64 bits = metered_bits(
        [&](ot::CostMeter& meter, i64 n) { twopc::cost_addition_formula(meter, n, f); });
    if (fewest > 0 && bits >= fewest) continue;
    fewest = bits;
    best.formula = f;
    best.shift = fraction - f.dropped;
  }
  return best;
}

std::shared_ptr<const Plan> plan(bool cosine, FixedFormat in, FixedFormat out) {
  static PlanCache<Plan> plans;
  return plans.get(cosine ? 1 : 0, in, out, [&] { return make_plan(cosine, in, out); });
}

int sum_bits(const Plan& p) { return p.formula.ring_bits - p.formula.dropped; }
// Of the result, which is at most 2^out.scale in size, in a ring four times as large.
int result_bits(const Plan& p) { return p.out.scale + 3; }

functions::RingShares sine(functions::Evaluator& evaluator, bool cosine,
                           const functions::RingShares& x, FixedFormat in, FixedFormat out) {
  const auto p = plan(cosine, in, out);
  const int bits = p->angle.bits;
  const functions::RingShares wide = bits > in.bits ? evaluator.extend_signed(x, in.bits, bits) : x;
  const u64 start = evaluator.constant(p->start);
  const functions::RingShares angle =
      evaluator.map(x.count, bits, [&](i64 i) { return wide[i] * p->angle.factor + start; });
  const functions::RingShares sum =
      evaluator.round_off(evaluator.addition_formula(p->formula, angle), sum_bits(*p), p->shift);
  if (out.bits <= result_bits(*p)) return sum;
  return evaluator.extend_bounded(sum, result_bits(*p), u64{1} << (out.scale + 1), out.bits);
}

i64 clear_value(const Plan& p, i64 x) {
  const int bits = p.angle.bits;
  const u64 angle = (static_cast<u64>(x) * p.angle.factor + p.start) & low_mask(bits);
  const u64 place =
      bits > kPlaceScale ? angle >> (bits - kPlaceScale) : angle << (kPlaceScale - bits);
  return static_cast<i64>(rounded(point_at(place).sine, p.out.scale));
}

}  // namespace

functions::RingShares sin_product(functions::Evaluator& evaluator, const functions::RingShares& x,
                                  FixedFormat in, FixedFormat out) {
  return sine(evaluator, false, x, in, out);
}
void clear_sin_product(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear_function(*plan(false, in, out), in, x, y, clear_value);
}

functions::RingShares cos_product(functions::Evaluator& evaluator, const functions::RingShares& x,
                                  FixedFormat in, FixedFormat out) {
  return sine(evaluator, true, x, in, out);
}
void clear_cos_product(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear_function(*plan(true, in, out), in, x, y, clear_value);
}

}  // namespace privml::fixed
