// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/smooth.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "functions/fixed/evaluation.h"
#include "functions/fixed/folded_tail.h"
#include "functions/fixed/piecewise.h"
#include "twopc/compare/comparison_plan.h"

namespace privml::fixed {
namespace {

constexpr int kLongestRange = 5;  // log2 of the largest |x| whose values fit 64 bits
constexpr i64 kOne = i64{1} << kValueScale;

// With t = tail(|x|), which falls to 0:
enum class SmoothForm {
  line,    // max(x, 0) + sign * t
  odd,     // 1 - t, and f(-x) = -f(x)
  rising,  // 1 - t, and f(-x) = 1 - f(x)
};

struct Smooth {
  const char* name;
  Series tail;
  SmoothForm form;
  int sign;
  int largest_domain;  // the tail's, log2
};

constexpr Smooth kFunctions[] = {
    // by SmoothFunction
    {"erf", Series::erf_tail, SmoothForm::odd, -1, 3},
    {"gelu", Series::gelu_tail, SmoothForm::line, -1, 3},
    {"gelu_tanh", Series::gelu_tanh_tail, SmoothForm::line, -1, 3},
    {"silu", Series::silu_tail, SmoothForm::line, -1, 5},
    {"softplus", Series::softplus_tail, SmoothForm::line, 1, 5},
    {"sigmoid", Series::sigmoid_tail, SmoothForm::rising, -1, 5},
    {"tanh", Series::tanh_tail, SmoothForm::odd, -1, 4},
};

bool is_mirrored(const Smooth& f) { return f.form != SmoothForm::line; }

// f(x) + f(-x), at `scale`.
i64 mirrored_sum(const Smooth& f, int scale) {
  return f.form == SmoothForm::rising ? i64{1} << scale : 0;
}

// f at place x of scale 48, at scale 56.
i64 smooth_value(const Smooth& f, i64 x) {
  const i64 tail = series_value(f.tail, static_cast<u64>(x < 0 ? -x : x));
  if (is_mirrored(f)) return x < 0 ? mirrored_sum(f, kValueScale) - kOne + tail : kOne - tail;
  return (std::max<i64>(x, 0) << (kValueScale - kPlaceScale)) + f.sign * tail;
}

// The part of f that depends on min(|x|, T), which the clamped form evaluates.
i64 clamped_value(const Smooth& f, u64 t) {
  const i64 tail = series_value(f.tail, t);
  return is_mirrored(f) ? kOne - tail : f.sign * tail;
}

// log2 of the least T >= 2 whose last place before it has a tail of less than a quarter of a unit.
int tail_end(const Smooth& f, FixedFormat in, FixedFormat out) {
  for (int t = 1; t < f.largest_domain; ++t) {
    const u64 last = (u64{1} << (kPlaceScale + t)) - (u64{1} << (kPlaceScale - in.scale));
    if (series_value(f.tail, last) >> (kValueScale - out.scale - 2) == 0) return t;
  }
  return f.largest_domain;
}

struct Plan {
  Smooth f;
  FixedFormat in, out;
  std::optional<FoldedTail> folded;  // instead of all that follows
  bool clamped;
  int end;  // log2 T, of the clamped form
  Piecewise table;
  int drop;  // bits of the result behind the last place
};

PiecewiseTask task_of(const Smooth& f, FixedFormat in, FixedFormat out, int bits) {
  return {f.tail,
          bits,
          in.scale,
          out.scale + kPolynomialPrecision,
          out.scale + kCoefficientGuard,
          out.bits + kCoefficientGuard,
          0,
          true};
}

// The place of cell + v at scale 48, counted from 0.
i64 place(const PiecewiseShape& shape, FixedFormat in, i64 cell, u64 v) {
  const int length = kPlaceScale + shape.place_bits - in.scale;  // 2^length is a cell
  return (cell << length) + static_cast<i64>((u128{v} << length) >> kPlaceScale);
}

i64 clamping_bits(FixedFormat in, FixedFormat out, bool mirrored) {
  return evaluated_bits([&](functions::Evaluator& evaluator, const functions::RingShares& x) {
    evaluator.relu(x, in.bits);
    evaluator.relu(x, in.bits);
    if (mirrored) evaluator.multiplex(evaluator.bits(x.count), x, out.bits);
  });
}

bool prefers_clamping(const Smooth& f, FixedFormat in, FixedFormat out, int end) {
  const int range = in.bits - 1 - in.scale;  // |x| <= 2^range
  if (range <= end) return false;
  const PiecewiseTask whole = task_of(f, in, out, in.bits),
                      clamped = task_of(f, in, out, in.scale + end);
  if (range > kLongestRange || !has_piecewise(whole)) return true;
  return estimated_bits(clamped, choose_piecewise(clamped)) +
             clamping_bits(in, out, is_mirrored(f)) <
         estimated_bits(whole, choose_piecewise(whole));
}

// A line must have no bits behind the result's last place.
bool has_folded(const Smooth& f, FixedFormat in, FixedFormat out) {
  return is_mirrored(f) || out.scale >= in.scale;
}

functions::RingShares value_of(functions::Evaluator& evaluator, const Plan& p,
                               const functions::RingShares& x);

Plan make_polynomial_plan(const Smooth& f, FixedFormat in, FixedFormat out) {
  Plan p{f, in, out, {}, false, tail_end(f, in, out), {}, 0};
  p.clamped = prefers_clamping(f, in, out, p.end);
  PiecewiseShape shape =
      choose_piecewise(task_of(f, in, out, p.clamped ? in.scale + p.end : in.bits));
  if (shape.degree == 0) {
    // Values need no guard, but max(x, 0) its fraction.
    shape.scale = p.clamped && !is_mirrored(f) ? std::max(out.scale, in.scale) : out.scale;
    shape.ring_bits = out.bits + shape.scale - out.scale;
  }
  p.drop = result_scale(shape) - out.scale;
  if (p.clamped) {
    p.table = make_piecewise(
        shape, [&](i64 cell, u64 v) { return clamped_value(f, place(shape, in, cell, v)); });
    return p;
  }
  const i64 least = i64{1} << (kPlaceScale + in.bits - 1 - in.scale);
  const i64 largest = shape.degree == 0 ? static_cast<i64>(low_mask(out.bits - 1)) : INT64_MAX;
  p.table = make_piecewise(
      shape, [&](i64 cell, u64 v) { return smooth_value(f, place(shape, in, cell, v) - least); },
      largest);
  return p;
}

Plan make_plan(const Smooth& f, FixedFormat in, FixedFormat out) {
  expect_formats(in, out, f.name);
  Plan p = make_polynomial_plan(f, in, out);
  if (!has_folded(f, in, out)) return p;
  Plan folded{f, in, out, make_folded_tail(f.tail, in, out), false, 0, {}, 0};
  const auto price = [](Plan tried) {
    (tried.folded ? tried.folded->table : tried.table).apart = true;
    return evaluated_bits([&](functions::Evaluator& evaluator,
                              const functions::RingShares& x) { value_of(evaluator, tried, x); },
                          {twopc::kCorrelationBits, twopc::kLevelBits});
  };
  return folded.folded && price(folded) < price(p) ? folded : p;
}

std::shared_ptr<const Plan> plan(SmoothFunction f, FixedFormat in, FixedFormat out) {
  static PlanCache<Plan> plans;
  const int row = static_cast<int>(f);
  return plans.get(row, in, out, [&] { return make_plan(kFunctions[row], in, out); });
}

// max(x, 0) is added with `shift` more bits behind the point, in a ring of this many bits.
int line_shift(const Plan& p) { return p.drop + p.out.scale - p.in.scale; }
int line_bits(const Plan& p) { return p.table.shape.ring_bits - line_shift(p); }

// The least place at which the clamped form's table ends.
u64 last_place(const Plan& p) { return low_mask(p.in.scale + p.end); }

functions::RingShares round_off(functions::Evaluator& evaluator, const Plan& p,
                                functions::RingShares sum) {
  return evaluator.round_off(std::move(sum), p.table.shape.ring_bits, p.drop);
}

functions::RingShares whole_value(functions::Evaluator& evaluator, const Plan& p,
                                  const functions::RingShares& x) {
  return round_off(evaluator, p,
                   piecewise(evaluator, p.table, evaluator.plus(x, u64{1} << (p.in.bits - 1))));
}

// y if x >= 0, else `together` - y.
functions::RingShares mirrored(functions::Evaluator& evaluator, const Plan& p,
                               const functions::BitShares& nonnegative,
                               const functions::RingShares& y) {
  const int bits = p.out.bits;
  const u64 together = evaluator.constant(static_cast<u64>(mirrored_sum(p.f, p.out.scale)));
  const functions::RingShares change =
      evaluator.map(y.count, bits, [&](i64 k) { return 2 * y[k] - together; });
  const functions::RingShares chosen =
      evaluator.multiplex(evaluator.negated(nonnegative), change, bits);
  return evaluator.map(y.count, bits, [&](i64 k) { return y[k] - chosen[k]; });
}

functions::RingShares clamped_value(functions::Evaluator& evaluator, const Plan& p,
                                    const functions::RingShares& x) {
  const int bits = p.in.bits, ring = p.table.shape.ring_bits;
  const u64 last = evaluator.constant(last_place(p));
  functions::BitShares nonnegative;
  functions::RingShares line = evaluator.relu(x, bits, &nonnegative);
  const functions::RingShares beyond = evaluator.relu(
      evaluator.map(x.count, bits, [&](i64 k) { return last + x[k] - 2 * line[k]; }), bits);
  const functions::RingShares sum = piecewise(
      evaluator, p.table, evaluator.map(x.count, bits, [&](i64 k) { return last - beyond[k]; }));
  if (is_mirrored(p.f)) return mirrored(evaluator, p, nonnegative, round_off(evaluator, p, sum));
  if (line_bits(p) > bits) line = evaluator.extend_nonnegative(line, bits, line_bits(p));
  return round_off(evaluator, p, evaluator.map(x.count, ring, [&](i64 k) {
    return sum[k] + (line[k] << line_shift(p));
  }));
}

// A line is a part of the result, and a mirrored one is chosen by the sign.
functions::RingShares folded_value(functions::Evaluator& evaluator, const Plan& p,
                                   const functions::RingShares& x) {
  const int bits = p.in.bits, out_bits = p.out.bits, shift = p.out.scale - p.in.scale;
  const FoldedValue folded = folded_tail(evaluator, *p.folded, x);
  const functions::RingShares& tail = folded.tail;
  if (is_mirrored(p.f)) {
    const u64 one = evaluator.constant(u64{1} << p.out.scale);
    return mirrored(evaluator, p, folded.nonnegative,
                    evaluator.map(x.count, out_bits, [&](i64 k) { return one - tail[k]; }));
  }
  functions::RingShares line = folded.positive;
  if (out_bits > bits + shift) line = evaluator.extend_nonnegative(line, bits, out_bits - shift);
  const u64 sign = p.f.sign > 0 ? 1 : ~u64{0};
  return evaluator.map(x.count, out_bits,
                       [&](i64 k) { return (line[k] << shift) + sign * tail[k]; });
}

functions::RingShares value_of(functions::Evaluator& evaluator, const Plan& p,
                               const functions::RingShares& x) {
  if (p.folded) return folded_value(evaluator, p, x);
  return p.clamped ? clamped_value(evaluator, p, x) : whole_value(evaluator, p, x);
}

i64 clear_folded_value(const Plan& p, i64 value) {
  const i64 tail = static_cast<i64>(clear_folded_tail(*p.folded, value));
  if (is_mirrored(p.f)) {
    const i64 size = (i64{1} << p.out.scale) - tail;
    return value < 0 ? mirrored_sum(p.f, p.out.scale) - size : size;
  }
  const i64 line = std::max<i64>(value, 0) << (p.out.scale - p.in.scale);
  return to_signed(static_cast<u64>(line + p.f.sign * tail), p.out.bits);
}

i64 clear_value(const Plan& p, i64 value) {
  if (p.folded) return clear_folded_value(p, value);
  const i64 size = value < 0 ? -value : value;
  const u64 place = p.clamped ? std::min(static_cast<u64>(size), last_place(p))
                              : static_cast<u64>(value) + (u64{1} << (p.in.bits - 1));
  u64 sum = 0;
  clear_piecewise(p.table, {&place, 1}, {&sum, 1});
  if (p.clamped && !is_mirrored(p.f))
    sum += static_cast<u64>(std::max<i64>(value, 0)) << line_shift(p);
  const i64 rounded = static_cast<i64>(sum + functions::half_of(p.drop)) >> p.drop;
  const i64 result = to_signed(static_cast<u64>(rounded), p.out.bits);
  const bool mirrors = p.clamped && is_mirrored(p.f) && value < 0;
  return mirrors ? mirrored_sum(p.f, p.out.scale) - result : result;
}

}  // namespace

functions::RingShares smooth(functions::Evaluator& evaluator, SmoothFunction f,
                             const functions::RingShares& x, FixedFormat in, FixedFormat out) {
  return value_of(evaluator, *plan(f, in, out), x);
}

void clear_smooth(SmoothFunction f, std::span<const i64> x, FixedFormat in, FixedFormat out,
                  std::span<i64> y) {
  clear_function(*plan(f, in, out), in, x, y, clear_value);
}

}  // namespace privml::fixed
