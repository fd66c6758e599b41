// SPDX-License-Identifier: Apache-2.0
#include "twopc/width/truncate_by_sign.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"
#include "twopc/compare/comparison.h"
#include "twopc/product/private_product.h"
#include "twopc/select/random_selection.h"
#include "twopc/session/chunk.h"

namespace privml::twopc {
namespace {

// What both functions ask for: x where its own sign (y_bits = 0) is not negative, or where that of
// another number of y_bits bits is; the quotient in Z_{2^ring}.
struct Shape {
  int bits, shift, ring;
  int y_bits = 0;
  bool own_sign() const { return y_bits == 0; }
  int sign_bits() const { return own_sign() ? bits : y_bits; }
  int wider() const { return std::max(0, ring - (bits - shift)); }
};

// The carry out of the bits that are dropped, and that into the sign, if it has lower bits. Of one
// number the first is the split of the second, unless they are the same.
std::vector<ComparisonShape> comparisons(const Shape& shape) {
  if (shape.own_sign()) {
    const int low = shape.bits - 1;
    return {{low, shape.shift < low ? shape.shift : 0}};
  }
  std::vector<ComparisonShape> all{{shape.shift}};
  if (shape.y_bits > 1) all.push_back({shape.y_bits - 1});
  return all;
}

int levels_of(const ComparisonPlan& plan) { return static_cast<int>(std::ssize(plan.levels)); }

// After so many levels the carry out of the dropped bits is known.
int levels_to_carry(const Shape& shape, const ComparisonPlan& plan) {
  if (!shape.own_sign() || shape.shift == shape.bits - 1) return levels_of(plan);
  int known = 0;
  for (int level = 0; level < levels_of(plan); ++level)
    for (const Join& join : plan.levels[level])
      if (join.high == plan.low_root) known = level + 1;
  return known;
}

std::span<const u8> dropped_carry(const Shape& shape, const std::vector<Comparison>& carries) {
  const bool split = shape.own_sign() && shape.shift < shape.bits - 1;
  return split ? low_greater_of(carries[0]) : greater_of(carries[0]);
}

// XOR shares of whether the quotient is taken.
std::vector<u8> taken(int rank, const Shape& shape, std::span<const u64> signs,
                      const std::vector<Comparison>& carries) {
  const u8 flip = shape.own_sign() && rank == 0 ? 1 : 0;
  std::vector<u8> bits(signs.size());
  for (std::size_t i = 0; i < bits.size(); ++i)
    bits[i] = static_cast<u8>(signs[i] >> (shape.sign_bits() - 1) & 1) ^ flip;
  if (shape.sign_bits() == 1) return bits;
  const std::span<const u8> carry = greater_of(carries.back());
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] ^= carry[i];
  return bits;
}

// The quotient before it is selected: the shares' high parts, c, and without the carry of all of x.
struct Quotient {
  AlignedVector<u64> both;  // of the top bits of both shares, in a wider ring
  AlignedVector<u64> c;
};

AlignedVector<u64> quotient_of(const Shape& shape, std::span<const u64> x, const Quotient& parts) {
  AlignedVector<u64> high(x.size());
  const int width = shape.bits - shape.shift;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const u64 top = x[i] >> (shape.bits - 1) & 1;
    const u64 wrap = shape.wider() > 0 ? (top - parts.both[i]) << width : 0;
    const u64 part = (x[i] & low_mask(shape.bits)) >> shape.shift;
    high[i] = (part + parts.c[i] - wrap) & low_mask(shape.ring);
  }
  return high;
}

void run_chunk(ot::Party& party, const Shape& shape, std::span<const u64> x,
               std::span<const u64> signs, std::span<u64> out) {
  const i64 n = std::ssize(x);
  const std::vector<ComparisonShape> shapes = comparisons(shape);
  RandomBits low;
  RandomSelection chosen;
  std::vector<Comparison> carries(shapes.size());
  write_random_bits(party, n, shape.ring, low);
  draw_random_selection(party, n, chosen);
  PrivateProduct tops;
  if (shape.wider() > 0) {
    std::vector<u8> top(n);
    for (i64 i = 0; i < n; ++i) top[i] = x[i] >> (shape.bits - 1) & 1;
    write_private_product(party, top, shape.wider(), tops);
  }
  for (std::size_t k = 0; k < shapes.size(); ++k)
    prepare_comparison(party, shapes[k], n, carries[k]);
  for (std::size_t k = 0; k < shapes.size(); ++k)
    begin_comparison(party, shapes[k], k == 0 ? x : signs, carry_flip(party.rank), carries[k]);
  read_random_bits(party, low);
  Quotient parts{AlignedVector<u64>(n), AlignedVector<u64>(n)};
  if (shape.wider() > 0) read_private_product(party, tops, parts.both);
  for (Comparison& one : carries) read_masks(party, one);
  for (Comparison& one : carries) send_leaves(party, one);
  for (Comparison& one : carries) receive_leaves(party, one);

  int levels = 0;
  for (const Comparison& one : carries) levels = std::max(levels, levels_of(one.plan));
  const int known = levels_to_carry(shape, carries[0].plan);
  std::vector<u8> opened, difference(n);
  AlignedVector<u64> high;
  const auto select = [&] {
    high = quotient_of(shape, x, parts);
    write_drawn_selection(party, high, shape.ring, chosen);
  };
  for (int level = 0; level <= levels; ++level) {
    std::array<PendingLevel, 2> pending;
    const auto each = [&](auto&& work) {
      for (std::size_t k = 0; k < carries.size(); ++k)
        if (level < levels_of(carries[k].plan)) work(carries[k], pending[k]);
    };
    each([&](Comparison& one, PendingLevel& joins) { write_level(party, one, level, joins); });
    std::vector<PendingConversion> conversions;
    if (level == known) {
      conversions.push_back({low, dropped_carry(shape, carries), parts.c});
      write_conversions(party, conversions, opened);
    }
    if (level == levels) {
      write_difference(party, taken(party.rank, shape, signs, carries), chosen.bits, difference);
      if (known < levels) select();
    }
    each([&](Comparison& one, PendingLevel& joins) { read_level(party, one, joins); });
    if (level == known) read_conversions(party, conversions, opened);
    if (level == levels) read_bits_xor(party, difference);
  }
  if (known == levels) select();
  read_random_selection(party, chosen);
  select_values(chosen, high, difference, out);
}

void cost_chunk(ot::CostMeter& meter, i64 n, const Shape& shape) {
  Flight first = random_bits_flight(n, shape.ring), leaves;
  std::vector<Flight> levels;
  cost_draw_random_bits(meter, n, shape.ring);
  cost_draw_random_selection(meter, n);
  if (shape.wider() > 0) {
    cost_draw_private_product(meter, n);
    first = first + private_product_flight(n, shape.wider());
  }
  const std::vector<ComparisonShape> shapes = comparisons(shape);
  for (const ComparisonShape& one : shapes) {
    cost_draw_comparison(meter, one, n);
    cost_draw_levels(meter, one, n);
    first = first + comparison_flight(meter, one, n);
    leaves = leaves + leaves_flight(meter, one, n);
    for (int level = 0; level < comparison_levels(meter, one, n); ++level) {
      if (level == std::ssize(levels)) levels.emplace_back();
      levels[level] = levels[level] + level_flight(meter, one, n, level);
    }
  }
  const ComparisonPlan plan = plan_comparison(shapes[0], comparison_prices(meter, n));
  const int known = levels_to_carry(shape, plan);
  const bool early = known < std::ssize(levels);
  const i64 opened = packed_bytes(n, 1), converted = shape.ring > 1 ? opened : 0;
  levels.push_back({opened, opened});
  levels[known] = levels[known] + Flight{converted, converted};
  const Flight selection = random_selection_flight(n, 1, shape.ring);
  if (early) levels.back() = levels.back() + selection;
  cost_flight(meter, first);
  cost_flight(meter, leaves);
  for (const Flight& level : levels) cost_flight(meter, level);
  if (!early) cost_flight(meter, selection);
}

void run(ot::Party& party, const Shape& shape, std::span<const u64> x, std::span<const u64> signs,
         std::span<u64> out) {
  in_chunks(
      party, std::ssize(x), [&](ot::CostMeter& meter, i64 n) { cost_chunk(meter, n, shape); },
      [&](i64 begin, i64 n) {
        run_chunk(party, shape, x.subspan(begin, n), signs.subspan(begin, n),
                  out.subspan(begin, n));
      });
}

void cost(ot::CostMeter& meter, i64 n, const Shape& shape) {
  cost_in_chunks(meter, n, [&](ot::CostMeter& m, i64 count) { cost_chunk(m, count, shape); });
}

Shape rectified(int bits, int shift, int out_bits) {
  expect(shift >= 1 && shift < bits && bits <= 64,
         "truncate_rectified: needs 1 <= shift < bits <= 64");
  expect(out_bits >= 1 && out_bits <= 64, "truncate_rectified: out_bits must be in 1..64");
  return {bits, shift, out_bits};
}

Shape checked(const TruncateIfNegative& shape) {
  expect(shape.shift >= 1 && shape.shift < shape.bits && shape.bits <= 64,
         "truncate_if_negative: needs 1 <= shift < bits <= 64");
  expect(shape.wider >= 0 && shape.bits - shape.shift + shape.wider <= 64,
         "truncate_if_negative: the result's ring has at most 64 bits");
  expect(shape.y_bits >= 1 && shape.y_bits <= 64, "truncate_if_negative: y_bits must be in 1..64");
  return {shape.bits, shape.shift, shape.bits - shape.shift + shape.wider, shape.y_bits};
}

}  // namespace

void truncate_rectified(ot::Party& party, std::span<const u64> x, int bits, int shift, int out_bits,
                        std::span<u64> out) {
  const Shape shape = rectified(bits, shift, out_bits);
  expect(x.size() == out.size(), "truncate_rectified: out must be as long as x");
  run(party, shape, x, x, out);
}

void cost_truncate_rectified(ot::CostMeter& meter, i64 n, int bits, int shift, int out_bits) {
  cost(meter, n, rectified(bits, shift, out_bits));
}

void truncate_if_negative(ot::Party& party, const TruncateIfNegative& shape, std::span<const u64> x,
                          std::span<const u64> y, std::span<u64> out) {
  const Shape all = checked(shape);
  expect(x.size() == y.size() && x.size() == out.size(),
         "truncate_if_negative: x, y and out must be as long");
  run(party, all, x, y, out);
}

void cost_truncate_if_negative(ot::CostMeter& meter, i64 n, const TruncateIfNegative& shape) {
  cost(meter, n, checked(shape));
}

}  // namespace privml::twopc
