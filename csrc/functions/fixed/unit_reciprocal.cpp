// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/unit_reciprocal.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace privml::fixed {
namespace {

using Words = std::vector<u64>;

constexpr int kLargestLineScale = 18;  // 8 bits of u choose the line
constexpr int kLargestIndex = 8;

int low_bits(const UnitReciprocal& plan) { return plan.shape.fraction - plan.segment_bits; }
// A line's value has the scale fraction + segment_bits + 3; this is what is dropped of it.
int line_drop(const UnitReciprocal& plan) {
  return plan.shape.fraction + plan.segment_bits + 3 - plan.line_scale;
}

// 2^scale / v - 2^(scale - 1), to the nearest.
void fill_direct(UnitReciprocal& plan) {
  const auto [fraction, scale, out_bits] = plan.shape;
  const u64 most = (u64{1} << (scale - 1)) - 1;
  for (u64 u = 0; u < u64{1} << fraction; ++u) {
    const u128 v = (u128{1} << fraction) + u;
    const u64 value = static_cast<u64>(((u128{2} << (scale + fraction)) / v + 1) / 2);
    plan.constants.push_back(std::min(value - (u64{1} << (scale - 1)), most));
  }
}

i64 line_value(const UnitReciprocal& plan, u64 u) {
  const int low = low_bits(plan), drop = line_drop(plan);
  const u64 segment = u >> low, rest = u & low_mask(low);
  const i64 value = static_cast<i64>(plan.constants[segment] << (low + 1)) -
                    static_cast<i64>(plan.slopes[segment] * rest);
  return (value + (i64{1} << (drop - 1))) >> drop;
}

// With P = 2^g + segment and v = (P + t) / 2^g the chord of 1/v is 2^g (2P + 1 - t) / (P (P + 1))
// for 0 <= t <= 1; the line lies half of the largest distance below it:
// slope 2^(2g) / (P (P + 1)), constant 2^g (1 + sqrt(4 P (P + 1))) / (2 P (P + 1)) with
// sqrt(4 P (P + 1)) = 2P + 1 - 1 / (2 (2P + 1)) up to the cube of the last term.
void fill_lines(UnitReciprocal& plan) {
  const int g = plan.segment_bits;
  for (u64 p = u64{1} << g; p < u64{2} << g; ++p) {
    const u64 area = p * (p + 1), twice = 2 * p + 1;
    plan.slopes.push_back(((u64{2} << (3 * g + 3)) / area + 1) / 2);
    const u128 numerator = u128{2 * (twice + 1) * twice - 1} << (3 * g + 2);
    const u64 constant = static_cast<u64>((numerator / (2 * twice * area) + 1) / 2);
    plan.constants.push_back(constant - (u64{2} << (2 * g)));
  }
  // 1 / v ends below 1, by half a unit of the result and a little more; and not below 1/2.
  const int finer = 2 * g + 2 - plan.line_scale;
  const u64 less = finer > 0 ? (u64{1} << (finer - 1)) + 1 : 1;
  plan.constants[0] = std::min(plan.constants[0], (u64{2} << (2 * g)) - less);
  while (line_value(plan, low_mask(plan.shape.fraction)) < 0) ++plan.constants.back();
}

int slope_bits(const UnitReciprocal& plan) { return std::bit_width(std::ranges::max(plan.slopes)); }
int constant_bits(const UnitReciprocal& plan) {
  return std::max<int>(1, std::bit_width(std::ranges::max(plan.constants)));
}

twopc::LinearShape line_shape(const UnitReciprocal& plan, int ring) {
  return {{constant_bits(plan), false},
          low_bits(plan) + 1,
          {slope_bits(plan), false},
          ring + line_drop(plan)};
}

// Constant and slope of a segment as one entry.
Words line_table(const UnitReciprocal& plan) {
  Words table(plan.constants.size());
  for (std::size_t j = 0; j < table.size(); ++j)
    table[j] = plan.constants[j] << slope_bits(plan) | plan.slopes[j];
  return table;
}

// The ring of a line that is the result: the output's, or one with a top bit that is known.
int line_ring(const UnitReciprocal& plan) {
  return plan.shape.out_bits <= plan.shape.scale + 3 ? plan.shape.out_bits : plan.shape.scale + 1;
}

// The line's value in Z_{2^ring}, ring <= line_scale + 3.
LineLookup line_of(const UnitReciprocal& plan, int ring) {
  const twopc::LinearShape shape = line_shape(plan, ring);
  return {plan.segment_bits,
          low_bits(plan),
          shape.ell,
          {constant_bits(plan) + slope_bits(plan)},
          shape,
          {0, slope_bits(plan)},
          {0, 0},
          true};
}

functions::RingShares line(functions::Evaluator& evaluator, const UnitReciprocal& plan,
                           const functions::RingShares& u, int ring,
                           twopc::RandomOneHots* vectors) {
  const LineLookup lookup = line_of(plan, ring);
  LineFound found = line_lookup(
      evaluator, lookup, [&] { return std::vector<Words>{line_table(plan)}; }, u, vectors);
  return evaluator.round_off(std::move(found.value), lookup.line.ell, line_drop(plan));
}

// One step: with w ~ 2^line_scale / v and the remainder p = 2^(fraction + line_scale) - v w, the
// result is w (1 + p), p being small.
struct Iteration {
  int line;            // bits of w, the top one 0
  int remainder;       // bits of p, two's complement
  int remainder_drop;  // low bits of p without weight
  int product;         // bits of w * p
  int drop;            // of the product, to the output's scale
  int correction() const { return product - drop; }
};

Iteration iteration(const UnitReciprocal& plan) {
  const int fraction = plan.shape.fraction, i = plan.line_scale, scale = plan.shape.scale;
  const int dropped = std::max(0, fraction + i - scale - 4);
  const int product = i + 2 + fraction + 4 - dropped;
  return {i + 2, fraction + 4, dropped, product, fraction + 2 * i - dropped - scale};
}

// Added to the correction, which is far smaller, so that its top bit is 0.
u64 correction_offset(const Iteration& it) { return u64{1} << (it.correction() - 2); }

u64 iterated_value(const UnitReciprocal& plan, u64 u, i64 line) {
  const Iteration it = iteration(plan);
  const int fraction = plan.shape.fraction, i = plan.line_scale, scale = plan.shape.scale;
  const i64 w = line + (i64{1} << (i - 1));
  const i64 p = (i64{1} << (fraction + i)) - ((i64{1} << fraction) + static_cast<i64>(u)) * w;
  const i64 correction = (w * (p >> it.remainder_drop)) >> it.drop;
  return static_cast<u64>((w << (scale - i)) + correction - (i64{1} << (scale - 1)));
}

// The factor v w needs only as many bits as the ring of p has.
twopc::FactorFormat line_factor(const Iteration& it) {
  const int bits = std::min(it.line, it.remainder);
  return {bits, false, bits == it.line};
}

functions::RingShares iterate(functions::Evaluator& evaluator, const UnitReciprocal& plan,
                              const functions::RingShares& u, twopc::RandomOneHots* vectors) {
  const Iteration it = iteration(plan);
  const int fraction = plan.shape.fraction, i = plan.line_scale, out_bits = plan.shape.out_bits;
  const int shift = plan.shape.scale - i, kept = it.remainder - it.remainder_drop;
  const functions::RingShares from_half =
      evaluator.plus(line(evaluator, plan, u, it.line, vectors), u64{1} << (i - 1));
  const functions::RingShares w =
      evaluator.map(u.count, it.line, [&](i64 k) { return from_half[k]; });
  const functions::RingShares vw =
      evaluator.multiply(u, {fraction, false, false}, w, line_factor(it), it.remainder);
  const functions::RingShares p = evaluator.truncate_reduce(
      evaluator.map(u.count, it.remainder,
                    [&](i64 k) { return u64{0} - vw[k] - (w[k] << fraction); }),
      it.remainder, it.remainder_drop);
  const functions::RingShares product =
      evaluator.multiply(w, {it.line, true, true}, p, {kept, true, false}, it.product);
  const u64 offset = correction_offset(it);
  const functions::RingShares correction = evaluator.extend_nonnegative(
      evaluator.plus(evaluator.truncate_reduce(product, it.product, it.drop), offset),
      it.correction(), out_bits);
  const functions::RingShares wide =
      evaluator.extend_nonnegative(w, it.line, std::max(it.line, out_bits - shift));
  const u64 constant = evaluator.constant(offset + (u64{1} << (plan.shape.scale - 1)));
  return evaluator.map(u.count, out_bits,
                       [&](i64 k) { return (wide[k] << shift) + correction[k] - constant; });
}

}  // namespace

UnitReciprocal plan_unit_reciprocal(const UnitReciprocalShape& shape) {
  expect(shape.fraction >= 0 && shape.fraction <= 31 && shape.scale >= 4 && shape.scale <= 31 &&
             shape.out_bits >= shape.scale && shape.out_bits <= 64,
         "unit_reciprocal: fraction must lie in 0..31, scale in 4..31, out_bits in scale..64");
  UnitReciprocal plan{shape, shape.scale, 0, {}, {}};
  if (shape.scale > kLargestLineScale)
    plan.line_scale = static_cast<int>(ceil_div(shape.scale, 2)) + 2;
  plan.segment_bits = std::max(1, static_cast<int>(ceil_div(plan.line_scale - 2, 2)));
  if (shape.fraction <= std::min(plan.segment_bits + 2, kLargestIndex)) {
    plan.line_scale = shape.scale;
    plan.segment_bits = shape.fraction;
    fill_direct(plan);
  } else {
    fill_lines(plan);
  }
  return plan;
}

void clear_unit_reciprocal(const UnitReciprocal& plan, std::span<const u64> u, std::span<u64> out) {
  const u64 mask = low_mask(plan.shape.out_bits);
  for (std::size_t k = 0; k < u.size(); ++k) {
    const u64 value = u[k] & low_mask(plan.shape.fraction);
    if (plan.direct()) {
      out[k] = plan.constants[value];
    } else if (plan.iterates()) {
      out[k] = iterated_value(plan, value, line_value(plan, value)) & mask;
    } else {
      out[k] = static_cast<u64>(line_value(plan, value));
    }
  }
}

LineLookup line_of(const UnitReciprocal& plan) {
  return line_of(plan, plan.iterates() ? iteration(plan).line : line_ring(plan));
}

functions::RingShares unit_reciprocal(functions::Evaluator& evaluator, const UnitReciprocal& plan,
                                      const functions::RingShares& u,
                                      twopc::RandomOneHots* vectors) {
  const int out_bits = plan.shape.out_bits, bits = constant_bits(plan);
  if (plan.iterates()) return iterate(evaluator, plan, u, vectors);
  if (plan.shape.fraction == 0)
    return evaluator.map(u.count, out_bits,
                         [&](i64) { return evaluator.constant(plan.constants[0]); });
  if (plan.direct()) {
    const functions::RingShares entry =
        evaluator.lookup_xor(plan.constants, u, plan.shape.fraction, bits);
    return evaluator.word_to_ring(entry, {bits, false}, out_bits);
  }
  return evaluator.extend_nonnegative(line(evaluator, plan, u, line_ring(plan), vectors),
                                      line_ring(plan), out_bits);
}

}  // namespace privml::fixed
