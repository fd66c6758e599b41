// SPDX-License-Identifier: Apache-2.0
#include "twopc/lookup/folded_lookup.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"
#include "twopc/compare/comparison.h"
#include "twopc/lookup/lookup.h"
#include "twopc/lookup/one_hot.h"
#include "twopc/select/random_selection.h"
#include "twopc/session/chunk.h"

namespace privml::twopc {
namespace {

int high_bits(const FoldedLookupShape& shape) { return shape.bits - shape.place_bits; }
// max(x, 0) takes the low part modulo 2^bits.
int low_ring(const FoldedLookupShape& shape) { return std::max(shape.low_bits, shape.bits); }
// The carry and the sign are needed in the high part and above the low part.
int carry_ring(const FoldedLookupShape& shape) {
  return std::max(high_bits(shape), low_ring(shape) - shape.place_bits);
}
ComparisonShape comparison_of(const FoldedLookupShape& shape) {
  return {shape.bits - 1, shape.place_bits};
}

bool by_one_hots(const FoldedLookupShape& shape, double correlation_bits) {
  return prefers_one_hot(shape.index_bits, shape.widths, correlation_bits);
}

// Random bits and correlations for what the comparison is going to find.
struct Prepared {
  RandomBits carry, sign;
  RandomSelection high, low;
};

// h and u, selected by the sign, give high, low and max(x, 0).
struct Parts {
  AlignedVector<u64> h, u, positive, selected_h, selected_u;
};

void split(const FoldedLookupShape& shape, std::span<const u64> x, std::span<const u64> carry,
           Parts& parts) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const u64 low = x[i] & low_mask(shape.place_bits);
    parts.h[i] = ((x[i] & low_mask(shape.bits)) >> shape.place_bits) + carry[i];
    parts.u[i] = (low - (carry[i] << shape.place_bits)) & low_mask(low_ring(shape));
    parts.h[i] &= low_mask(high_bits(shape));
  }
}

void fold(int rank, const FoldedLookupShape& shape, const Parts& parts, const FoldedNumber& out) {
  const u64 one = rank == 0 ? 1 : 0;
  for (std::size_t i = 0; i < parts.h.size(); ++i) {
    const u64 h = parts.selected_h[i], u = parts.selected_u[i], sign = parts.positive[i];
    out.high[i] = (2 * h - parts.h[i] - one + sign) & low_mask(high_bits(shape));
    out.low[i] =
        (2 * u - parts.u[i] + ((one - sign) << shape.place_bits)) & low_mask(shape.low_bits);
    out.positive[i] = ((h << shape.place_bits) + u) & low_mask(shape.bits);
  }
}

void chunk(ot::Party& party, const FoldedLookupShape& shape,
           std::span<const std::span<const u64>> tables, std::span<const u64> x,
           const FoldedNumber& out, const BesideOpening& beside) {
  const i64 n = std::ssize(x);
  const bool one_hots = by_one_hots(shape, party.correlation_bits);
  Prepared prepared;
  RandomOneHots vectors;
  Comparison carries;
  const auto advance = [&] {
    if (one_hots) advance_one_hots(party, vectors);
  };
  // Whatever both write in a flight, the vectors come last.
  write_random_bits(party, n, carry_ring(shape), prepared.carry);
  write_random_bits(party, n, carry_ring(shape), prepared.sign);
  draw_random_selection(party, n, prepared.high);
  draw_random_selection(party, n, prepared.low);
  if (one_hots) draw_one_hots(party, n, shape.index_bits, vectors);
  begin_comparison(party, comparison_of(shape), x, carry_flip(party.rank), carries);
  if (one_hots) begin_one_hots(party, vectors);
  read_random_bits(party, prepared.carry);
  read_random_bits(party, prepared.sign);
  send_leaves(party, carries);
  advance();
  receive_leaves(party, carries);
  for (int level = 0; level < std::ssize(carries.plan.levels); ++level) {
    PendingLevel pending;
    write_level(party, carries, level, pending);
    advance();
    read_level(party, carries, pending);
  }
  const u8 first = party.rank == 0 ? 1 : 0;
  for (i64 i = 0; i < n; ++i)
    out.nonnegative[i] =
        static_cast<u8>(x[i] >> (shape.bits - 1) & 1) ^ first ^ greater_of(carries)[i];
  AlignedVector<u64> carry(n);
  Parts parts{AlignedVector<u64>(n), AlignedVector<u64>(n), AlignedVector<u64>(n),
              AlignedVector<u64>(n), AlignedVector<u64>(n)};
  std::vector<u8> opened, by_high(n), by_low(n);
  const PendingConversion conversions[] = {{prepared.carry, low_greater_of(carries), carry},
                                           {prepared.sign, out.nonnegative, parts.positive}};
  write_conversions(party, conversions, opened);
  write_difference(party, out.nonnegative, prepared.high.bits, by_high);
  write_difference(party, out.nonnegative, prepared.low.bits, by_low);
  advance();
  read_conversions(party, conversions, opened);
  read_bits_xor(party, by_high);
  read_bits_xor(party, by_low);
  split(shape, x, carry, parts);
  write_drawn_selection(party, parts.h, high_bits(shape), prepared.high);
  write_drawn_selection(party, parts.u, low_ring(shape), prepared.low);
  advance();
  read_random_selection(party, prepared.high);
  read_random_selection(party, prepared.low);
  select_values(prepared.high, parts.h, by_high, parts.selected_h);
  select_values(prepared.low, parts.u, by_low, parts.selected_u);
  fold(party.rank, shape, parts, out);
  if (!one_hots)
    return lookup_tables_xor(party, shape.index_bits, shape.widths, tables, out.high, out.found);
  while (vectors.step < one_hot_steps(shape.index_bits)) advance_one_hots(party, vectors);
  AlignedVector<u64> places;
  write_places(party, vectors, out.high, places);
  beside.write();
  read_places(party, vectors, places);
  beside.read();
  std::vector<TableAt> at;
  for (std::size_t t = 0; t < tables.size(); ++t) at.push_back({tables[t], out.found[t]});
  look_up_at(vectors, places, at);
}

// A single element goes with a second one, zero, since the flights are shared only where both
// parties send in each.
void padded_chunk(ot::Party& party, const FoldedLookupShape& shape,
                  std::span<const std::span<const u64>> tables, std::span<const u64> x,
                  const FoldedNumber& out) {
  if (x.size() > 1) return chunk(party, shape, tables, x, out, {});
  const std::array<u64, 2> numbers{x[0], 0};
  std::array<u64, 2> high, low, positive;
  std::array<u8, 2> nonnegative;
  std::vector<std::array<u64, 2>> words(out.found.size());
  const std::vector<std::span<u64>> found(words.begin(), words.end());
  chunk(party, shape, tables, numbers, {found, high, low, positive, nonnegative}, {});
  for (std::size_t t = 0; t < words.size(); ++t) out.found[t][0] = words[t][0];
  out.high[0] = high[0];
  out.low[0] = low[0];
  out.positive[0] = positive[0];
  out.nonnegative[0] = nonnegative[0];
}

void cost_chunk(ot::CostMeter& meter, i64 count, const FoldedLookupShape& shape, Flight beside) {
  const i64 n = std::max<i64>(count, 2);
  const ComparisonShape carries = comparison_of(shape);
  const bool one_hots = by_one_hots(shape, meter.correlation_bits);
  const int ring = carry_ring(shape), steps = one_hots ? one_hot_steps(shape.index_bits) : 0;
  int step = 0;
  const auto next = [&] {
    return step < steps ? one_hot_flight(n, shape.index_bits, step++) : Flight{};
  };
  for (int k = 0; k < 2; ++k) {
    cost_draw_random_bits(meter, n, ring);
    cost_draw_random_selection(meter, n);
  }
  if (one_hots) cost_draw_one_hots(meter, n, shape.index_bits);
  cost_draw_comparison(meter, carries, n);
  cost_draw_levels(meter, carries, n);
  cost_flight(meter, random_bits_flight(n, ring) + random_bits_flight(n, ring) +
                         comparison_flight(meter, carries, n) + next());
  cost_flight(meter, leaves_flight(meter, carries, n) + next());
  for (int level = 0; level < comparison_levels(meter, carries, n); ++level)
    cost_flight(meter, level_flight(meter, carries, n, level) + next());
  const i64 opening = packed_bytes(ring > 1 ? 2 * n : 0, 1) + 2 * packed_bytes(n, 1);
  cost_flight(meter, next() + Flight{opening, opening});
  cost_flight(meter, random_selection_flight(n, 1, high_bits(shape)) +
                         random_selection_flight(n, 1, low_ring(shape)) + next());
  if (!one_hots) return cost_lookup_tables_xor(meter, n, shape.index_bits, shape.widths);
  while (step < steps) cost_flight(meter, next());
  cost_flight(meter, open_places_flight(n, shape.index_bits) + beside);
}

void check(const FoldedLookupShape& shape) {
  expect(shape.place_bits >= 1 && shape.index_bits >= 1 && shape.index_bits <= 10 &&
             shape.place_bits + shape.index_bits < shape.bits && shape.bits <= 64 &&
             shape.place_bits < shape.low_bits && shape.low_bits <= 64,
         "folded_lookup: needs 1 <= place_bits < low_bits <= 64, 1 <= index_bits <= 10 and "
         "place_bits + index_bits < bits <= 64");
}

void check(const FoldedLookupShape& shape, std::span<const std::span<const u64>> tables,
           std::span<const u64> x, const FoldedNumber& out) {
  check(shape);
  const std::size_t n = x.size();
  expect(tables.size() == shape.widths.size() && out.found.size() == tables.size() &&
             out.high.size() == n && out.low.size() == n && out.positive.size() == n &&
             out.nonnegative.size() == n,
         "folded_lookup: lengths differ");
  for (std::span<const u64> table : tables)
    expect(std::ssize(table) == i64{1} << shape.index_bits,
           "folded_lookup: a table must have 2^index_bits entries");
}

}  // namespace

bool looks_up_by_one_hots(const FoldedLookupShape& shape, double correlation_bits) {
  return by_one_hots(shape, correlation_bits);
}

void folded_lookup_beside(ot::Party& party, const FoldedLookupShape& shape,
                          std::span<const std::span<const u64>> tables, std::span<const u64> x,
                          const FoldedNumber& out, const BesideOpening& beside) {
  check(shape, tables, x, out);
  expect(beside.vectors == nullptr && x.size() >= 2 &&
             std::ssize(x) <= one_hot_chunk(shape.index_bits) * party.chunk_factor,
         "folded_lookup: one chunk of two numbers or more shares the opening");
  chunk(party, shape, tables, x, out, beside);
}

void cost_folded_lookup_beside(ot::CostMeter& meter, i64 n, const FoldedLookupShape& shape,
                               Flight opening) {
  check(shape);
  cost_chunk(meter, n, shape, opening);
}

void folded_lookup(ot::Party& party, const FoldedLookupShape& shape,
                   std::span<const std::span<const u64>> tables, std::span<const u64> x,
                   const FoldedNumber& out) {
  check(shape, tables, x, out);
  in_chunks(
      party, std::ssize(x),
      [&](ot::CostMeter& meter, i64 count) { cost_chunk(meter, count, shape, {}); },
      [&](i64 begin, i64 count) {
        std::vector<std::span<u64>> found;
        for (std::span<u64> words : out.found) found.push_back(words.subspan(begin, count));
        padded_chunk(party, shape, tables, x.subspan(begin, count),
                     {found, out.high.subspan(begin, count), out.low.subspan(begin, count),
                      out.positive.subspan(begin, count), out.nonnegative.subspan(begin, count)});
      },
      one_hot_chunk(shape.index_bits));
}

void cost_folded_lookup(ot::CostMeter& meter, i64 n, const FoldedLookupShape& shape) {
  check(shape);
  cost_in_chunks(
      meter, n, [&](ot::CostMeter& m, i64 count) { cost_chunk(m, count, shape, {}); },
      one_hot_chunk(shape.index_bits));
}

}  // namespace privml::twopc
