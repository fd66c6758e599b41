// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/reciprocal_square_root.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "functions/fixed/evaluation.h"
#include "functions/fixed/normalization.h"
#include "functions/fixed/piecewise.h"

namespace privml::fixed {
namespace {

using Words = std::vector<u64>;

constexpr u64 kInverseRootTwo = 0xb504f333f9de6484;  // 2^64 / sqrt(2), rounded

struct Root {
  const char* name;
  Series series;
  bool is_reciprocal;
  int significant = 64;  // bits of a result that count
};
constexpr Root kRsqrt{"rsqrt", Series::rsqrt, true};
template <int significant>
constexpr Root kSignificantRsqrt{significant == 14 ? "rsqrt_significant_14" : "rsqrt_significant",
                                 Series::rsqrt, true, significant};
constexpr Root kSqrt{"sqrt", Series::sqrt, false};

// The function at (1 + t) * 2^parity, t of scale 48, at scale 56.
i64 root_value(const Root& root, u64 t, int parity) {
  const u64 value = static_cast<u64>(series_value(root.series, t));
  if (parity == 0) return static_cast<i64>(value);
  const u128 halved = (u128{value} * kInverseRootTwo) >> 63;  // value * sqrt(2)
  return static_cast<i64>(root.is_reciprocal ? halved >> 1 : halved);
}

// x = m * 2^parity * 4^exponent for x in the binade of place k; the result's power of two.
struct Binade {
  int parity, power;
};

Binade binade(const Root& root, FixedFormat in, FixedFormat out, int k) {
  const int parity = (k - in.scale) & 1, exponent = (k - in.scale - parity) / 2;
  return {parity, out.scale + (root.is_reciprocal ? -exponent : exponent)};
}

struct Plan {
  Root root;
  FixedFormat in, out;
  bool direct;
  int lowest, highest;  // powers of two in use: 2^(power - lowest) multiplies the polynomial
  Words powers;         // by place; 0 if the result is below half a unit
  Words parities;       // by place, at the selector's bit of the polynomial's argument
  Piecewise table;
  bool early;                // the polynomial is rounded before the product with its power of two
  int value_bits, sum_bits;  // rings of the rounded polynomial and of its product
  int drop;                  // bits of the product behind the last place
};

void plan_direct(Plan& p) {
  const auto value = [&](i64 x, u64) -> i64 {
    if (x == 0 && !p.root.is_reciprocal) return 0;
    const u64 number = std::max<i64>(x, 1);
    const int k = std::bit_width(number) - 1;
    const Binade b = binade(p.root, p.in, p.out, k);
    const i64 root =
        root_value(p.root, (number << (kPlaceScale - k)) - (u64{1} << kPlaceScale), b.parity);
    const int shift = b.power - p.out.scale;
    return shift >= 0 ? root << shift : root >> -shift;
  };
  p.table = make_piecewise({p.in.bits - 1, 0, 0, p.out.scale, p.out.bits}, value,
                           static_cast<i64>(low_mask(p.out.bits - 1)));
}

// Results reach from half the power of two to it, or from it to twice as much.
int largest_power(const Plan& p) { return p.out.bits - (p.root.is_reciprocal ? 1 : 2); }

void plan_powers(Plan& p) {
  const int places = p.in.bits - 1, most = largest_power(p);
  std::vector<int> power(places);
  for (int k = 0; k < places; ++k) power[k] = std::min(binade(p.root, p.in, p.out, k).power, most);
  p.highest = std::max(*std::ranges::max_element(power), -1);
  p.lowest = std::max(*std::ranges::min_element(power), -1);
  for (int k = 0; k < places; ++k) {
    p.powers.push_back(power[k] < p.lowest ? 0 : u64{1} << (power[k] - p.lowest));
    // The mantissa's top bit is 1 as well.
    p.parities.push_back(static_cast<u64>(binade(p.root, p.in, p.out, k).parity)
                         << (p.in.bits - 2));
  }
}

Plan make_plan(const Root& root, FixedFormat in, FixedFormat out) {
  expect_formats(in, out, root.name);
  Plan p{};
  p.root = root;
  p.in = in;
  p.out = out;
  p.direct = in.bits <= kDirectBits;
  if (p.direct) {
    plan_direct(p);
    return p;
  }
  plan_powers(p);
  const int fraction = in.bits - 2;
  // Places of the polynomial's value; no result has one that counts behind them.
  const int places = std::min(p.highest, std::max(root.significant, p.lowest + 1));
  PiecewiseTask task{root.series,
                     fraction,
                     fraction,
                     places + kPolynomialPrecision,
                     places + kCoefficientGuard,
                     out.bits + places - p.lowest + kCoefficientGuard,
                     1};
  p.early = !has_piecewise(task);
  p.value_bits = std::min(places + kCoefficientGuard + 2, task.ring_bits);
  if (p.early) task.ring_bits = p.value_bits;
  const PiecewiseShape shape = choose_piecewise(task);
  p.drop = (p.early ? shape.scale : result_scale(shape)) - p.lowest;
  p.sum_bits = out.bits + p.drop;
  // Only at the largest power of two can a result round to 2^(out.bits - 1).
  const int below = result_scale(shape) - places;
  const i64 largest =
      p.highest == largest_power(p)
          ? static_cast<i64>((low_mask(out.bits - 1 - (p.highest - places)) << below) +
                             (u64{1} << (below - 1)) - 1)
          : INT64_MAX;
  const int length = kPlaceScale + shape.place_bits - fraction;
  const i64 cells = i64{1} << (shape.index_bits - 1);
  p.table = make_piecewise(
      shape,
      [&](i64 cell, u64 v) {
        const u64 t = (static_cast<u64>(cell & (cells - 1)) << length) +
                      static_cast<u64>((u128{v} << length) >> kPlaceScale);
        return root_value(root, t, cell < cells ? 1 : 0);  // the mantissa's top bit is 1
      },
      largest);
  return p;
}

std::shared_ptr<const Plan> plan(const Root& root, FixedFormat in, FixedFormat out) {
  static PlanCache<Plan> plans;
  return plans.get(static_cast<int>(root.series) * 65 + root.significant, in, out,
                   [&] { return make_plan(root, in, out); });
}

// Its piecewise part, in Z_{2^sum_bits}.
functions::RingShares value_of(functions::Evaluator& evaluator, const Plan& p,
                               const functions::RingShares& argument,
                               twopc::RandomOneHots* vectors) {
  functions::RingShares value = piecewise(evaluator, p.table, argument, vectors);
  if (!p.early) return value;
  const int place_bits = p.table.shape.place_bits;
  const functions::RingShares rounded =
      evaluator.round_off(std::move(value), p.value_bits + place_bits, place_bits);
  return evaluator.extend_nonnegative(rounded, p.value_bits, p.sum_bits);
}

functions::RingShares root(functions::Evaluator& evaluator, const Root& f,
                           const functions::RingShares& x, FixedFormat in, FixedFormat out) {
  const auto found = plan(f, in, out);
  const Plan& p = *found;
  if (p.direct) return piecewise(evaluator, p.table, x);
  const int bits = in.bits - 1;
  const bool looks_up = p.table.shape.degree > 0;
  const LineLookup lookup = looks_up ? line_of(p.table) : LineLookup{};
  Continuation continuation{
      {p.powers, f.is_reciprocal ? p.powers[0] : 0}, p.highest - p.lowest + 1, p.sum_bits};
  if (looks_up) continuation.lookup = &lookup;
  Continued number = normalize(evaluator, x, in.bits, continuation);
  // For x = 0 the mantissa is 0 too: the selector is made what it is for x = 1.
  const u64 selector = u64{1} << (bits - 1);
  const functions::RingShares parity = select_by_place(
      evaluator, number.number, p.parities, f.is_reciprocal ? selector ^ p.parities[0] : 0);
  const functions::RingShares argument =
      evaluator.map(x.count, bits, [&](i64 k) { return number.number.mantissa[k] + parity[k]; });
  const functions::RingShares sum = multiply_by_power(
      evaluator, number, value_of(evaluator, p, argument, number.lookup_vectors()));
  return evaluator.round_off(sum, p.sum_bits, p.drop);
}

u64 clear_root(const Plan& p, u64 x) {
  u64 value = 0;
  if (p.direct) {
    clear_piecewise(p.table, {&x, 1}, {&value, 1});
    return value;
  }
  const ClearNormalized number = clear_normalize(x, p.in.bits);
  if (number.place < 0 && !p.root.is_reciprocal) return 0;
  const int k = std::max(number.place, 0);
  const u64 selector = u64{1} << (p.in.bits - 2);
  const u64 argument = (number.place < 0 ? selector : number.mantissa) + p.parities[k];
  clear_piecewise(p.table, {&argument, 1}, {&value, 1});
  if (p.early)
    value = (value + functions::half_of(p.table.shape.place_bits)) >> p.table.shape.place_bits;
  return (value * p.powers[k] + functions::half_of(p.drop)) >> p.drop;
}

void clear(const Root& root, std::span<const i64> x, FixedFormat in, FixedFormat out,
           std::span<i64> y) {
  clear_function(*plan(root, in, out), in, x, y, [&](const Plan& p, i64 value) {
    return to_signed(clear_root(p, static_cast<u64>(value)), out.bits);
  });
}

}  // namespace

functions::RingShares rsqrt(functions::Evaluator& evaluator, const functions::RingShares& x,
                            FixedFormat in, FixedFormat out) {
  return root(evaluator, kRsqrt, x, in, out);
}
void clear_rsqrt(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear(kRsqrt, x, in, out, y);
}

template <int significant>
functions::RingShares rsqrt_significant(functions::Evaluator& evaluator,
                                        const functions::RingShares& x, FixedFormat in,
                                        FixedFormat out) {
  return root(evaluator, kSignificantRsqrt<significant>, x, in, out);
}
template <int significant>
void clear_rsqrt_significant(std::span<const i64> x, FixedFormat in, FixedFormat out,
                             std::span<i64> y) {
  clear(kSignificantRsqrt<significant>, x, in, out, y);
}
template functions::RingShares rsqrt_significant<14>(functions::Evaluator&,
                                                     const functions::RingShares&, FixedFormat,
                                                     FixedFormat);
template functions::RingShares rsqrt_significant<20>(functions::Evaluator&,
                                                     const functions::RingShares&, FixedFormat,
                                                     FixedFormat);
template void clear_rsqrt_significant<14>(std::span<const i64>, FixedFormat, FixedFormat,
                                          std::span<i64>);
template void clear_rsqrt_significant<20>(std::span<const i64>, FixedFormat, FixedFormat,
                                          std::span<i64>);

functions::RingShares sqrt(functions::Evaluator& evaluator, const functions::RingShares& x,
                           FixedFormat in, FixedFormat out) {
  return root(evaluator, kSqrt, x, in, out);
}
void clear_sqrt(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear(kSqrt, x, in, out, y);
}

}  // namespace privml::fixed
