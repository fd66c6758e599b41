// SPDX-License-Identifier: Apache-2.0
#include "twopc/width/truncate_if_negative.h"

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

using Shape = TruncateIfNegative;

// The carry out of the bits that are dropped, and that into the sign of y, if it has lower bits.
std::vector<ComparisonShape> comparisons(const Shape& shape) {
  std::vector<ComparisonShape> all{{shape.shift}};
  if (shape.y_bits > 1) all.push_back({shape.y_bits - 1});
  return all;
}

void finish_together(ot::Party& party, std::span<Comparison> all) {
  for (Comparison& one : all) read_masks(party, one);
  for (Comparison& one : all) send_leaves(party, one);
  for (Comparison& one : all) receive_leaves(party, one);
  int levels = 0;
  for (const Comparison& one : all)
    levels = std::max(levels, static_cast<int>(std::ssize(one.plan.levels)));
  for (int level = 0; level < levels; ++level) {
    std::array<PendingLevel, 2> pending;
    const auto each = [&](auto&& work) {
      for (std::size_t k = 0; k < all.size(); ++k)
        if (level < std::ssize(all[k].plan.levels)) work(all[k], pending[k]);
    };
    each([&](Comparison& one, PendingLevel& joins) { write_level(party, one, level, joins); });
    each([&](Comparison& one, PendingLevel& joins) { read_level(party, one, joins); });
  }
}

void run_chunk(ot::Party& party, const Shape& shape, std::span<const u64> x, std::span<const u64> y,
               std::span<u64> out) {
  const i64 n = std::ssize(x);
  const int width = shape.bits - shape.shift, ring = width + shape.wider;
  const std::vector<ComparisonShape> shapes = comparisons(shape);
  RandomBits low;
  RandomSelection chosen;
  std::vector<Comparison> carries(shapes.size());
  write_random_bits(party, n, ring, low);
  draw_random_selection(party, n, chosen);
  PrivateProduct tops;
  std::vector<u8> top(n, 0);
  if (shape.wider > 0) {
    for (i64 i = 0; i < n; ++i) top[i] = x[i] >> (shape.bits - 1) & 1;
    write_private_product(party, top, shape.wider, tops);
  }
  for (std::size_t k = 0; k < shapes.size(); ++k)
    prepare_comparison(party, shapes[k], n, carries[k]);
  for (std::size_t k = 0; k < shapes.size(); ++k)
    begin_comparison(party, shapes[k], k == 0 ? x : y, carry_flip(party.rank), carries[k]);
  read_random_bits(party, low);
  AlignedVector<u64> both(n, 0);
  if (shape.wider > 0) read_private_product(party, tops, both);
  finish_together(party, carries);
  std::vector<u8> negative(n), difference(n), opened;
  for (i64 i = 0; i < n; ++i) negative[i] = y[i] >> (shape.y_bits - 1) & 1;
  if (carries.size() > 1) {
    const std::span<const u8> carry = greater_of(carries[1]);
    for (i64 i = 0; i < n; ++i) negative[i] ^= carry[i];
  }
  AlignedVector<u64> c(n), high(n);
  const PendingConversion conversions[] = {{low, greater_of(carries[0]), c}};
  write_conversions(party, conversions, opened);
  write_difference(party, negative, chosen.bits, difference);
  read_conversions(party, conversions, opened);
  read_bits_xor(party, difference);
  for (i64 i = 0; i < n; ++i) {
    const u64 wrap = shape.wider > 0 ? (top[i] - both[i]) << width : 0;
    high[i] = (((x[i] & low_mask(shape.bits)) >> shape.shift) + c[i] - wrap) & low_mask(ring);
  }
  write_drawn_selection(party, high, ring, chosen);
  read_random_selection(party, chosen);
  select_values(chosen, high, difference, out);
}

void cost_chunk(ot::CostMeter& meter, i64 n, const Shape& shape) {
  const int width = shape.bits - shape.shift + shape.wider;
  Flight first = random_bits_flight(n, width), leaves;
  std::vector<Flight> levels;
  cost_draw_random_bits(meter, n, width);
  cost_draw_random_selection(meter, n);
  if (shape.wider > 0) {
    cost_draw_private_product(meter, n);
    first = first + private_product_flight(n, shape.wider);
  }
  for (const ComparisonShape& one : comparisons(shape)) {
    cost_draw_comparison(meter, one, n);
    cost_draw_levels(meter, one, n);
    first = first + comparison_flight(meter, one, n);
    leaves = leaves + leaves_flight(meter, one, n);
    for (int level = 0; level < comparison_levels(meter, one, n); ++level) {
      if (level == std::ssize(levels)) levels.emplace_back();
      levels[level] = levels[level] + level_flight(meter, one, n, level);
    }
  }
  cost_flight(meter, first);
  cost_flight(meter, leaves);
  for (const Flight& level : levels) cost_flight(meter, level);
  const i64 opened = packed_bytes(n, 1) * (width > 1 ? 2 : 1);
  meter.exchange(opened, opened);
  cost_flight(meter, random_selection_flight(n, 1, width));
}

void check(const Shape& shape) {
  expect(shape.shift >= 1 && shape.shift < shape.bits && shape.bits <= 64,
         "truncate_if_negative: needs 1 <= shift < bits <= 64");
  expect(shape.wider >= 0 && shape.bits - shape.shift + shape.wider <= 64,
         "truncate_if_negative: the result's ring has at most 64 bits");
  expect(shape.y_bits >= 1 && shape.y_bits <= 64, "truncate_if_negative: y_bits must be in 1..64");
}

}  // namespace

void truncate_if_negative(ot::Party& party, const TruncateIfNegative& shape, std::span<const u64> x,
                          std::span<const u64> y, std::span<u64> out) {
  check(shape);
  expect(x.size() == y.size() && x.size() == out.size(),
         "truncate_if_negative: x, y and out must be as long");
  in_chunks(
      party, std::ssize(x), [&](ot::CostMeter& meter, i64 n) { cost_chunk(meter, n, shape); },
      [&](i64 begin, i64 n) {
        run_chunk(party, shape, x.subspan(begin, n), y.subspan(begin, n), out.subspan(begin, n));
      });
}

void cost_truncate_if_negative(ot::CostMeter& meter, i64 n, const TruncateIfNegative& shape) {
  check(shape);
  cost_in_chunks(meter, n, [&](ot::CostMeter& m, i64 count) { cost_chunk(m, count, shape); });
}

}  // namespace privml::twopc
