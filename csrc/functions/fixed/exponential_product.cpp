// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/exponential_product.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <vector>

#include "functions/fixed/evaluation.h"
#include "functions/fixed/exponential_range.h"
#include "functions/fixed/exponential_table.h"
#include "functions/fixed/piecewise.h"
#include "twopc/compare/comparison_plan.h"
#include "twopc/lookup/rotate.h"
#include "twopc/product/addition_formula.h"

namespace privml::fixed {
namespace {

// Tables, widths and the constant added before rounding.
struct ExponentialProduct {
  FixedFormat in, out;
  ExponentialRange range;
  twopc::AdditionFormula formula;
  int shift;   // bits of the formula's result behind the last place
  u64 offset;  // added before they are dropped
  // Of the formula's result; the product with half a bit to spare.
  int result_bits() const { return formula.ring_bits - formula.dropped; }
};

constexpr int kFactorScale = 63, kTableScale = 55, kLongTableScale = 51;
// log2 of the largest b: e^4 has 6 bits, and e^8, of which ciphertexts hold more, 12.
constexpr int kLargestPlace = 2, kLargestPlaceOfCiphertexts = 3;
constexpr int kMostTableBits = 5;
constexpr int kZeroBits = 2;                     // values below 2^-2 units become zero
constexpr double kLowest = 0.3, kHighest = 0.7;  // where the boundary may lie
constexpr int kGapScale = 22;                    // it is looked for in steps of 2^-22
constexpr i64 kMostArguments = i64{1} << 21;     // that are looked at
constexpr double kLog2E = 1.4426950408889634;

// The same function in both forms, so that a session may choose; the second one is where numbers
// are not too long for ciphertexts, and only for results that do not depend on the shares.
struct ExponentialForms {
  ExponentialProduct by_transfers;
  std::optional<ExponentialProduct> by_ciphertexts;
};

functions::RingShares exponential_product(functions::Evaluator& evaluator,
                                          const ExponentialProduct& p,
                                          const functions::RingShares& x) {
  const functions::RingShares a = evaluator.negated(x, p.in.bits);
  const functions::RingShares sum =
      evaluator.plus(evaluator.addition_formula(p.formula, a), p.offset);
  return within_range(evaluator, p.range, a, sum, p.shift);
}

struct Widths {
  int table_bits, place_bits;
  int value_scale;   // of e^-u
  int factor_scale;  // of e^-b
};

// e^-(b / 2^scale) at scale 63 without a branch by b.
struct PowerProducts {
  std::vector<u64> powers;  // of bit k
  u64 operator()(u64 b) const {
    u64 value = u64{1} << kFactorScale;
    for (std::size_t k = 0; k < powers.size(); ++k) {
      const u64 mask = u64{0} - (b >> k & 1);
      const u64 factor = (powers[k] & mask) | (u64{1} << kFactorScale & ~mask);
      value = static_cast<u64>((u128{value} * factor) >> kFactorScale);
    }
    return value;
  }
};

PowerProducts make_power_products(int scale, int place_bits) {
  PowerProducts exponentials;
  for (int k = 0; k < place_bits; ++k)
    exponentials.powers.push_back(static_cast<u64>(exponential_fraction(u64{1} << k, scale) >> 1));
  return exponentials;
}

int table_scale(int scale, const Widths& w) {
  return w.place_bits - scale <= kLargestPlace ? kTableScale : kLongTableScale;
}

// e^-h for each high digit, at table_scale(); the last one means -1.
std::vector<u64> high_table(int scale, const Widths& w) {
  const int own_scale = table_scale(scale, w);
  std::vector<u64> table(u64{1} << w.table_bits);
  for (u64 h = 0; h + 1 < table.size(); ++h)
    table[h] = static_cast<u64>(exponential_fraction(h << w.place_bits, scale) >> (64 - own_scale));
  table.back() = static_cast<u64>((u128{1} << (64 + own_scale)) /
                                  exponential_fraction(u64{1} << w.place_bits, scale));
  return table;
}

u64 round_off(u128 word, int drop) {
  return static_cast<u64>((word + (u128{1} << (drop - 1))) >> drop);
}

twopc::AdditionTerm make_term(int scale, const Widths& w) {
  const PowerProducts exponentials = make_power_products(scale, w.place_bits);
  const auto table = high_table(scale, w);
  const int place_bits = w.place_bits, table_bits = w.table_bits, value_scale = w.value_scale,
            factor_scale = w.factor_scale, products = kFactorScale + table_scale(scale, w);
  twopc::AdditionTerm term;
  term.constant = u64{1} << factor_scale;
  term.negative = true;
  term.values = [=](i64, u64 share, std::span<u64> entries) {
    u64 turned[2 << kMostTableBits];
    twopc::rotate_table(table.data(), table_bits, share >> place_bits, turned);
    const u64 low = exponentials(share & low_mask(place_bits));
    for (std::size_t j = 0; j < entries.size(); ++j)
      entries[j] = round_off(u128{low} * turned[j], products - value_scale);
  };
  term.factor = [=](i64, u64 b) {
    return (u64{1} << factor_scale) - round_off(exponentials(b), kFactorScale - factor_scale);
  };
  term.factor_bits = std::bit_width(term.factor(0, low_mask(place_bits)));
  return term;
}

double largest_place(FixedFormat in, const Widths& w) {
  return std::ldexp(1.0, w.place_bits - in.scale);
}

// The error of the product in units of the output, before it is rounded, if the value is v.
struct ErrorBound {
  double value, factor, ratio, constant;
  double operator()(double v) const {
    return std::max(value + v * factor, value * ratio + v * factor / ratio) + constant;
  }
};

ErrorBound error_bound(FixedFormat in, FixedFormat out, const Widths& w,
                       const ExponentialProduct& plan) {
  const double value = std::ldexp(1.0, out.scale - w.value_scale - 1),
               factor = std::ldexp(1.0, -w.factor_scale - 1);
  return {value, factor, std::exp(-largest_place(in, w)),
          value * factor + twopc::dropped_error(plan.formula) * std::ldexp(1.0, -plan.shift) +
              std::ldexp(1.0, out.scale - 46)};  // of the constants
}

// With as many bits dropped as keep their error below `share` units.
std::optional<ExponentialProduct> make_product(FixedFormat in, FixedFormat out, const Widths& w,
                                               double share) {
  if (w.value_scale > table_scale(in.scale, w)) return std::nullopt;
  const int covered = w.table_bits + w.place_bits;
  ExponentialProduct plan{
      in, out, exponential_range(in, out, covered, kZeroBits, u64{1} << w.place_bits), {}, 0, 0};
  plan.formula = {covered,
                  w.place_bits,
                  0,
                  true,
                  w.value_scale + w.factor_scale + 2,
                  0,
                  {make_term(in.scale, w)}};
  const u64 largest = high_table(in.scale, w).back() >> (table_scale(in.scale, w) - w.value_scale);
  plan.formula.value_bits = std::bit_width(largest + 1) + 1;
  const int fraction = w.value_scale + w.factor_scale - out.scale;
  plan.shift = fraction;
  for (int dropped = 1; dropped < fraction; ++dropped) {
    twopc::AdditionFormula less = plan.formula;
    less.dropped = dropped;
    if (twopc::dropped_error(less) * std::ldexp(1.0, dropped - fraction) > share) break;
    plan.formula.dropped = dropped;
    plan.shift = fraction - dropped;
  }
  const twopc::AdditionFormula& f = plan.formula;
  if (fraction < 1 || f.value_bits > f.ring_bits || f.ring_bits - f.dropped > 64)
    return std::nullopt;
  plan.offset = u64{1} << (plan.shift - 1);
  return plan;
}

// 2^out.scale e^-a for all arguments whose rounding may be in question.
std::vector<double> critical_values(FixedFormat in, FixedFormat out) {
  std::vector<double> values;
  const u64 last = u64{1} << (in.bits - 1);
  for (u64 a = 0; a <= last && std::ssize(values) < kMostArguments; ++a) {
    const u128 fraction = exponential_fraction(a, in.scale);
    const double v = std::ldexp(static_cast<double>(fraction), out.scale - 64);
    if (v < kLowest / 2) break;
    values.push_back(v);
  }
  return values;
}

// The middle of the widest gap between the values' intervals of error on the circle of fractions:
// 1 - place, added before rounding down, makes every result certain. None below `least` steps.
std::optional<double> widest_gap(const std::vector<double>& values, const ErrorBound& error,
                                 i64 least) {
  constexpr double kSteps = i64{1} << kGapScale;
  const i64 first = static_cast<i64>(kLowest * kSteps), last = static_cast<i64>(kHighest * kSteps);
  std::vector<u8> taken(last - first, 0);
  for (double v : values) {
    const double fraction = v - std::floor(v), e = error(v);
    for (double turn : {-1.0, 0.0, 1.0}) {
      const double from = (fraction + turn - e) * kSteps, to = (fraction + turn + e) * kSteps;
      if (to < static_cast<double>(first) || from > static_cast<double>(last)) continue;
      const i64 begin = std::max(static_cast<i64>(std::floor(from)), first);
      const i64 end = std::min(static_cast<i64>(std::floor(to)) + 1, last);
      std::fill(taken.begin() + (begin - first), taken.begin() + (end - first), 1);
    }
  }
  i64 widest = 0, place = 0, since = 0;
  for (i64 i = 0; i < std::ssize(taken); ++i) {
    if (taken[i]) since = i + 1;
    if (i + 1 - since <= widest) continue;
    widest = i + 1 - since;
    place = 2 * first + i + 1 + since;
  }
  if (widest < least) return std::nullopt;
  return static_cast<double>(place) / (2 * kSteps);
}

double boundary(const ExponentialProduct& plan) {
  return 1 - std::ldexp(static_cast<double>(plan.offset), -plan.shift);
}

// Whether the boundary `own` rounds every value as `place` does, wherever in its interval of error;
// smaller ones than those in `values` become zero.
bool rounds_alike(const std::vector<double>& values, const ErrorBound& error, double place,
                  double own) {
  if (kLowest / 2 + error(kLowest / 2) >= own) return false;
  return std::ranges::all_of(values, [&](double v) {
    const double from = v - own, below = std::floor(from), away = from - below, e = error(v);
    return below == std::floor(v - place) && e < away && e < 1 - away;
  });
}

// The fewest bits with which no result depends on the shares.
std::optional<ExponentialProduct> make_exact(FixedFormat in, FixedFormat out, Widths w,
                                             const std::vector<double>& values) {
  const int more = static_cast<int>(std::ceil(kLog2E * largest_place(in, w)));
  for (int scale = in.scale + out.scale - 1;; ++scale) {
    w.value_scale = scale;
    w.factor_scale = scale + more - 1;
    if (w.factor_scale > kFactorScale - 2) return std::nullopt;
    auto plan = make_product(in, out, w, std::ldexp(1.0, out.scale - scale - 4));
    if (!plan) return std::nullopt;
    // Twice the step in which the offset can be chosen.
    const i64 least = i64{2} << std::max(kGapScale - plan->shift, 0);
    const ErrorBound error = error_bound(in, out, w, *plan);
    const auto place = widest_gap(values, error, least);
    if (!place) continue;
    plan->offset = static_cast<u64>(std::llround(std::ldexp(1 - *place, plan->shift)));
    if (rounds_alike(values, error, *place, boundary(*plan))) return plan;
  }
}

constexpr int kProductGuard = 3;  // bits of the factors below the last place
constexpr double kProductDropped = 0.125;

// Of n instances, in bits on the wire; the bits of a product of polynomials are those of its work.
i64 price(const ExponentialProduct& plan, i64 n, double correlation) {
  ot::CostMeter meter(ot::RcotCost{"ideal", 0, 1, 1});
  meter.correlation_bits = correlation;
  functions::Evaluator evaluator(meter, n);
  exponential_product(evaluator, plan, evaluator.ring(n));
  const double drawn = static_cast<double>(meter.cots[0] + meter.cots[1]);
  return 8 * (meter.bytes[0] + meter.bytes[1]) +
         static_cast<i64>((correlation + twopc::kComputingBits) * drawn) +
         twopc::work_of(plan.formula, n);
}

i64 wire_bits(const ExponentialProduct& plan) {
  return evaluated_bits([&](functions::Evaluator& evaluator, const functions::RingShares& x) {
    exponential_product(evaluator, plan, x);
  });
}

// Calls each(widths) for the tables that serve the formats, with places up to 2^largest_place.
template <class Each>
void for_each_table(FixedFormat in, FixedFormat out, int largest_place, Each&& each) {
  for (int table_bits = 2; table_bits <= kMostTableBits; ++table_bits) {
    if (table_bits + 1 > in.bits) break;
    const int covered = covered_bits(in, out, table_bits + 1, table_bits);
    const Widths w{table_bits, covered - table_bits, 0, 0};
    if (w.place_bits - in.scale <= largest_place) each(w);
  }
}

// The cheapest by bits on the wire; none if 64 bits do not suffice. `exact`: the result does not
// depend on the shares.
std::optional<ExponentialProduct> plan_transfers(FixedFormat in, FixedFormat out, bool exact,
                                                 const std::vector<double>& values) {
  std::optional<ExponentialProduct> best;
  for_each_table(in, out, kLargestPlace, [&](Widths w) {
    std::optional<ExponentialProduct> plan;
    if (exact) {
      plan = make_exact(in, out, w, values);
    } else {
      w.value_scale = out.scale + kProductGuard;
      w.factor_scale = w.value_scale + static_cast<int>(std::ceil(kLog2E * largest_place(in, w)));
      plan = make_product(in, out, w, kProductDropped);
    }
    if (plan && (!best || wire_bits(*plan) < wire_bits(*best))) best = plan;
  });
  return best;
}

// The same function with bits and tables for which ciphertexts cost the least.
std::optional<ExponentialProduct> plan_ciphertexts(FixedFormat in, FixedFormat out,
                                                   const ExponentialProduct& same,
                                                   const std::vector<double>& values) {
  const double place = boundary(same);
  std::optional<ExponentialProduct> best;
  i64 fewest = 0;
  for_each_table(in, out, kLargestPlaceOfCiphertexts, [&](Widths w) {
    const int more = static_cast<int>(std::ceil(kLog2E * largest_place(in, w)));
    int most = same.shift;  // of bits behind the last place; longer factors may need fewer
    bool served = false;
    for (w.value_scale = in.scale + out.scale - 1;; ++w.value_scale) {
      w.factor_scale = w.value_scale + more - 1;
      if (w.factor_scale > kFactorScale - 2) return;
      auto plan = make_product(in, out, w, 1);
      if (!plan) return;
      plan->formula.by_ciphertexts = true;
      if (!twopc::fits_ciphertexts(plan->formula)) return;
      const int fraction = w.value_scale + w.factor_scale - out.scale;
      const auto serves = [&](int shift) {
        plan->formula.dropped = fraction - shift;
        plan->shift = shift;
        plan->offset = static_cast<u64>(std::llround(std::ldexp(1 - place, shift)));
        return rounds_alike(values, error_bound(in, out, w, *plan), place, boundary(*plan));
      };
      if (fraction < most || !serves(most)) continue;
      const int before = most;
      while (most > 1 && serves(most - 1)) --most;
      serves(most);
      if (served && most == before) return;
      served = true;
      const i64 bits = price(*plan, kFunctionChunk, twopc::kCorrelationBits);
      if (best && bits >= fewest) continue;
      best = plan;
      fewest = bits;
    }
  });
  return best;
}

using MaybeForms = std::optional<ExponentialForms>;

MaybeForms plan_exponential_product(FixedFormat in, FixedFormat out, bool exact) {
  expect_wide_formats(in, out, exact ? "exp_negative_exact" : "exp_negative_product");
  const std::vector<double> values = exact ? critical_values(in, out) : std::vector<double>{};
  if (std::ssize(values) >= kMostArguments) return std::nullopt;
  const auto plan = plan_transfers(in, out, exact, values);
  if (!plan) return std::nullopt;
  if (!exact) return ExponentialForms{*plan, std::nullopt};
  return ExponentialForms{*plan, plan_ciphertexts(in, out, *plan, values)};
}

std::shared_ptr<const MaybeForms> cached_plan(bool exact, FixedFormat in, FixedFormat out) {
  static PlanCache<MaybeForms> plans;
  return plans.get(exact ? 1 : 0, in, out,
                   [&] { return plan_exponential_product(in, out, exact); });
}

bool has_plan(bool exact, FixedFormat in, FixedFormat out) {
  return cached_plan(exact, in, out)->has_value();
}

// A copy: its functions are small.
ExponentialForms plan(bool exact, FixedFormat in, FixedFormat out) {
  const auto found = cached_plan(exact, in, out);
  expect(found->has_value(),
         exact ? "exp_negative_exact: 64 bits do not suffice for these formats"
               : "exp_negative_product: 64 bits do not suffice for these formats");
  return **found;
}

functions::RingShares evaluated(functions::Evaluator& evaluator, const ExponentialForms& forms,
                                const functions::RingShares& x) {
  bool ciphertexts = false;
  const auto choose = [&](const auto& planner) {
    ciphertexts = planner.ciphertexts && forms.by_ciphertexts &&
                  price(*forms.by_ciphertexts, x.count, planner.correlation_bits) <
                      price(forms.by_transfers, x.count, planner.correlation_bits);
  };
  evaluator.call([&](ot::Party& party) { choose(party); },
                 [&](ot::CostMeter& meter) { choose(meter); });
  return exponential_product(evaluator, ciphertexts ? *forms.by_ciphertexts : forms.by_transfers,
                             x);
}

i64 clear_value(const ExponentialProduct& p, i64 x) {
  const u64 a = u64{0} - static_cast<u64>(x);
  if (p.range.end > 0 && a >= p.range.end) return 0;
  const u128 value = exponential_fraction(a, p.in.scale) << p.out.scale;
  return static_cast<i64>((value + (u128{p.offset} << (64 - p.shift))) >> 64);
}

}  // namespace

bool has_exp_negative_exact(FixedFormat in, FixedFormat out) { return has_plan(true, in, out); }

functions::RingShares exp_negative_exact(functions::Evaluator& evaluator,
                                         const functions::RingShares& x, FixedFormat in,
                                         FixedFormat out) {
  return evaluated(evaluator, plan(true, in, out), x);
}

void clear_exp_negative_exact(std::span<const i64> x, FixedFormat in, FixedFormat out,
                              std::span<i64> y) {
  clear_function(plan(true, in, out).by_transfers, in, x, y, clear_value);
}

bool has_exp_negative_product(FixedFormat in, FixedFormat out) { return has_plan(false, in, out); }

functions::RingShares exp_negative_product(functions::Evaluator& evaluator,
                                           const functions::RingShares& x, FixedFormat in,
                                           FixedFormat out) {
  return evaluated(evaluator, plan(false, in, out), x);
}

void clear_exp_negative_product(std::span<const i64> x, FixedFormat in, FixedFormat out,
                                std::span<i64> y) {
  clear_function(plan(false, in, out).by_transfers, in, x, y, clear_value);
}

}  // namespace privml::fixed
