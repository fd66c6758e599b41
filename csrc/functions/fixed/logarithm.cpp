// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/logarithm.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "functions/fixed/evaluation.h"
#include "functions/fixed/normalization.h"
#include "functions/fixed/piecewise.h"

namespace privml::fixed {
namespace {

using Words = std::vector<u64>;

constexpr u64 kLogarithmsOfTwo[] = {
#include "functions/fixed/tables/logarithm_of_two.inc"
};
constexpr u64 kLogarithmOfTwo = kLogarithmsOfTwo[0];  // scale 64

// ln 2 to the nearest multiple of 2^-scale, scale < 64.
i64 logarithm_of_two(int scale) {
  return static_cast<i64>((kLogarithmOfTwo + (u64{1} << (63 - scale))) >> (64 - scale));
}

// Whether binades * ln 2 lies within the output format.
bool fits(FixedFormat out, int binades) {
  const u64 size = static_cast<u64>(binades < 0 ? -binades : binades);
  return u128{kLogarithmOfTwo} * size <= u128{1} << (64 + out.bits - 1 - out.scale);
}

struct Plan {
  FixedFormat in, out;
  bool direct;
  Piecewise table;
  Words places;  // by place, counted from `first`, kept within the output format
  int first;
  int place_bits;  // of these
  i64 binade;      // ln 2 at the result's scale
  int drop;
};

// The place of a binade is its own if some of its logarithms fit the output format, otherwise
// that of the nearest binade all of whose do; the binade of 1 is such a one.
void plan_places(Plan& p) {
  const int s = p.in.scale, places = p.in.bits - 1;
  const auto whole = [&](int k) { return fits(p.out, k - s) && fits(p.out, k + 1 - s); };
  const auto partly = [&](int k) {
    return fits(p.out, k - s) || (k > 0 && fits(p.out, k + 1 - s));  // the lowest has one number
  };
  int lowest = s, highest = s;
  while (lowest > 0 && whole(lowest - 1)) --lowest;
  while (highest < places - 1 && whole(highest + 1)) ++highest;
  std::vector<int> place(places);
  for (int k = 0; k < places; ++k) place[k] = partly(k) ? k : std::clamp(k, lowest, highest);
  const auto [least, largest] = std::ranges::minmax(place);
  p.first = least;
  for (int k : place) p.places.push_back(static_cast<u64>(k - p.first));
  p.place_bits = std::max<int>(std::bit_width(static_cast<u64>(largest - p.first)), 1);
}

// Logarithm of number / 2^in.scale at scale 56, not below the output format.
i64 direct_value(FixedFormat in, FixedFormat out, u64 number) {
  const int k = std::bit_width(number) - 1;
  const u64 t = (number << (kPlaceScale - k)) - (u64{1} << kPlaceScale);
  const i64 value = series_value(Series::log, t) + (k - in.scale) * logarithm_of_two(kValueScale);
  const int room = std::min(out.bits - 1 - out.scale, 6);
  return std::max(value, -(i64{1} << (kValueScale + room)));
}

Plan make_plan(FixedFormat in, FixedFormat out) {
  expect_formats(in, out, "log");
  Plan p{in, out, in.bits <= kDirectBits, {}, {}, 0, 0, 0, 0};
  if (p.direct) {
    p.table = make_piecewise(
        {in.bits - 1, 0, 0, out.scale, out.bits},
        [&](i64 x, u64) { return direct_value(in, out, static_cast<u64>(std::max<i64>(x, 1))); },
        static_cast<i64>(low_mask(out.bits - 1)));
    return p;
  }
  const int fraction = in.bits - 2;
  const PiecewiseShape shape =
      choose_piecewise({Series::log, fraction, fraction, out.scale + kPolynomialPrecision,
                        out.scale + kCoefficientGuard, out.bits + kCoefficientGuard});
  const int length = kPlaceScale + shape.place_bits - fraction;
  p.table = make_piecewise(shape, [&](i64 cell, u64 v) {
    return series_value(Series::log, (static_cast<u64>(cell) << length) +
                                         static_cast<u64>((u128{v} << length) >> kPlaceScale));
  });
  plan_places(p);
  p.binade = logarithm_of_two(result_scale(shape));
  p.drop = result_scale(shape) - out.scale;
  return p;
}

std::shared_ptr<const Plan> plan(FixedFormat in, FixedFormat out) {
  static PlanCache<Plan> plans;
  return plans.get(0, in, out, [&] { return make_plan(in, out); });
}

// What the result counts from: the logarithm of the first place, and half a unit.
u64 start(const Plan& p) {
  return static_cast<u64>((p.first - p.in.scale) * p.binade) + (u64{1} << (p.drop - 1));
}

u64 clear_value(const Plan& p, u64 x) {
  u64 sum = 0;
  if (p.direct) {
    clear_piecewise(p.table, {&x, 1}, {&sum, 1});
    return sum;
  }
  const ClearNormalized number = clear_normalize(x, p.in.bits);
  clear_piecewise(p.table, {&number.mantissa, 1}, {&sum, 1});
  sum += p.places[std::max(number.place, 0)] * static_cast<u64>(p.binade) + start(p);
  return static_cast<u64>(static_cast<i64>(sum) >> p.drop);
}

}  // namespace

functions::RingShares log(functions::Evaluator& evaluator, const functions::RingShares& x,
                          FixedFormat in, FixedFormat out) {
  const auto p = plan(in, out);
  if (p->direct) return piecewise(evaluator, p->table, x);
  const int ring = p->table.shape.ring_bits;
  const Normalized number = normalize(evaluator, x, in.bits);
  const functions::RingShares place = select_by_place(evaluator, number, p->places, p->places[0]);
  const functions::RingShares value = piecewise(evaluator, p->table, number.mantissa);
  const functions::RingShares binades = evaluator.word_to_ring(place, {p->place_bits, false}, ring);
  const u64 first = evaluator.constant(start(*p));
  const functions::RingShares sum = evaluator.map(x.count, ring, [&](i64 k) {
    return value[k] + binades[k] * static_cast<u64>(p->binade) + first;
  });
  return evaluator.truncate_reduce(sum, ring, p->drop);
}

void clear_log(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear_function(*plan(in, out), in, x, y, [&](const Plan& p, i64 value) {
    return to_signed(clear_value(p, static_cast<u64>(value)), out.bits);
  });
}

}  // namespace privml::fixed
