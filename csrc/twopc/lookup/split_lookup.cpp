// SPDX-License-Identifier: Apache-2.0
#include "twopc/lookup/split_lookup.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"
#include "twopc/compare/comparison.h"
#include "twopc/compare/table_carry.h"
#include "twopc/lookup/lookup.h"
#include "twopc/lookup/one_hot.h"
#include "twopc/select/random_selection.h"
#include "twopc/session/chunk.h"
#include "twopc/width/split.h"

namespace privml::twopc {
namespace {

// The carry out of the low part is needed in the high part and above the low part.
int carry_bits(const SplitLookupShape& shape) {
  return std::max(shape.index_bits, shape.low_bits - shape.place_bits);
}

void compare(ot::Party& party, const SplitLookupShape& shape, std::span<const u64> x,
             RandomOneHots& vectors, bool has_vectors, std::span<u64> c) {
  const i64 n = std::ssize(x);
  const auto begin = [&] {
    if (!has_vectors) begin_one_hots(party, vectors);
  };
  RandomBits random;
  Comparison carry;
  // Whatever both write in a flight, the vectors come last.
  write_random_bits(party, n, carry_bits(shape), random);
  if (!has_vectors) draw_one_hots(party, n, shape.index_bits, vectors);
  begin_comparison(party, {shape.place_bits}, x, carry_flip(party.rank), carry);
  begin();
  read_random_bits(party, random);
  send_leaves(party, carry);
  advance_one_hots(party, vectors);
  receive_leaves(party, carry);
  for (int level = 0; level < std::ssize(carry.plan.levels); ++level) {
    PendingLevel pending;
    write_level(party, carry, level, pending);
    advance_one_hots(party, vectors);
    read_level(party, carry, pending);
  }
  std::vector<u8> differences;
  const PendingConversion conversions[] = {{random, greater_of(carry), c}};
  write_conversions(party, conversions, differences);
  advance_one_hots(party, vectors);
  read_conversions(party, conversions, differences);
}

void look_up_carry(ot::Party& party, const SplitLookupShape& shape, std::span<const u64> x,
                   RandomOneHots& vectors, bool has_vectors, std::span<u64> c) {
  if (!has_vectors) draw_one_hots(party, std::ssize(x), shape.index_bits, vectors);
  TableCarry carry;
  begin_table_carry(party, x, shape.place_bits, carry_bits(shape), carry);
  if (!has_vectors) begin_one_hots(party, vectors);
  send_table_carry(party, carry, c);
  advance_one_hots(party, vectors);
  receive_table_carry(party, carry, c);
}

void chunk(ot::Party& party, const SplitLookupShape& shape,
           std::span<const std::span<const u64>> tables, std::span<const u64> x,
           std::span<const std::span<u64>> found, std::span<u64> low, const BesideOpening& beside) {
  const i64 n = std::ssize(x);
  const bool has_vectors = beside.vectors != nullptr;
  RandomOneHots own;
  RandomOneHots& vectors = has_vectors ? *beside.vectors : own;
  AlignedVector<u64> c(n), high(n), opened;
  const bool by_table = prefers_table_carry(party, n, shape.place_bits, carry_bits(shape));
  (by_table ? look_up_carry : compare)(party, shape, x, vectors, has_vectors, c);
  while (vectors.step < one_hot_steps(shape.index_bits)) advance_one_hots(party, vectors);
  for (i64 i = 0; i < n; ++i) {
    high[i] = (x[i] >> shape.place_bits) + c[i];
    low[i] = ((x[i] & low_mask(shape.place_bits)) - (c[i] << shape.place_bits)) &
             low_mask(shape.low_bits);
  }
  write_places(party, vectors, high, opened);
  beside.write();
  read_places(party, vectors, opened);
  beside.read();
  std::vector<TableAt> at;
  for (size_t t = 0; t < tables.size(); ++t) at.push_back({tables[t], found[t]});
  look_up_at(vectors, opened, at);
}

// A single element goes with a second one, zero, since the flights are shared only where both
// parties send in each.
void padded_chunk(ot::Party& party, const SplitLookupShape& shape,
                  std::span<const std::span<const u64>> tables, std::span<const u64> x,
                  std::span<const std::span<u64>> found, std::span<u64> low) {
  if (x.size() > 1) return chunk(party, shape, tables, x, found, low, {});
  const std::array<u64, 2> numbers{x[0], 0};
  std::array<u64, 2> places;
  std::vector<std::array<u64, 2>> words(found.size());
  const std::vector<std::span<u64>> out(words.begin(), words.end());
  chunk(party, shape, tables, numbers, out, places, {});
  for (size_t t = 0; t < found.size(); ++t) found[t][0] = words[t][0];
  low[0] = places[0];
}

void cost_chunk(ot::CostMeter& meter, i64 count, const SplitLookupShape& shape, bool has_vectors,
                Flight beside) {
  const i64 n = std::max<i64>(count, 2);
  const ComparisonShape carry{shape.place_bits};
  const int steps = has_vectors ? 0 : one_hot_steps(shape.index_bits);
  int step = 0;
  const auto next = [&] {
    return step < steps ? one_hot_flight(n, shape.index_bits, step++) : Flight{};
  };
  if (!has_vectors) cost_draw_one_hots(meter, n, shape.index_bits);
  if (prefers_table_carry(meter, n, shape.place_bits, carry_bits(shape))) {
    const Flight first = next(), second = next();
    cost_table_carry(meter, n, shape.place_bits, carry_bits(shape), first, second);
  } else {
    cost_draw_random_bits(meter, n, carry_bits(shape));
    cost_draw_comparison(meter, carry, n);
    cost_draw_levels(meter, carry, n);
    cost_flight(meter, random_bits_flight(n, carry_bits(shape)) +
                           comparison_flight(meter, carry, n) + next());
    cost_flight(meter, leaves_flight(meter, carry, n) + next());
    for (int level = 0; level < comparison_levels(meter, carry, n); ++level)
      cost_flight(meter, level_flight(meter, carry, n, level) + next());
    const i64 opening = carry_bits(shape) > 1 ? packed_bytes(n, 1) : 0;
    cost_flight(meter, next() + Flight{opening, opening});
  }
  while (step < steps) cost_flight(meter, next());
  cost_flight(meter, open_places_flight(n, shape.index_bits) + beside);
}

void check(const SplitLookupShape& shape) {
  expect(shape.place_bits >= 1 && shape.place_bits + shape.index_bits <= 64 &&
             shape.place_bits <= shape.low_bits && shape.low_bits <= 64,
         "split_lookup: needs 1 <= place_bits <= low_bits <= 64 and at most 64 bits");
}

void check(const SplitLookupShape& shape, std::span<const std::span<const u64>> tables,
           std::span<const u64> x, std::span<const std::span<u64>> found, std::span<u64> low) {
  check(shape);
  expect(tables.size() == shape.widths.size() && found.size() == tables.size() &&
             x.size() == low.size(),
         "split_lookup: lengths differ");
  for (std::span<const u64> table : tables)
    expect(std::ssize(table) == i64{1} << shape.index_bits,
           "split_lookup: a table must have 2^index_bits entries");
}

}  // namespace

bool looks_up_by_one_hots(const SplitLookupShape& shape, double correlation_bits) {
  return prefers_one_hot(shape.index_bits, shape.widths, correlation_bits);
}

void split_lookup_beside(ot::Party& party, const SplitLookupShape& shape,
                         std::span<const std::span<const u64>> tables, std::span<const u64> x,
                         std::span<const std::span<u64>> found, std::span<u64> low,
                         const BesideOpening& beside) {
  check(shape, tables, x, found, low);
  expect(x.size() >= 2 && std::ssize(x) <= one_hot_chunk(shape.index_bits) * party.chunk_factor,
         "split_lookup: one chunk of two numbers or more shares its flights");
  chunk(party, shape, tables, x, found, low, beside);
}

void cost_split_lookup_beside(ot::CostMeter& meter, i64 n, const SplitLookupShape& shape,
                              bool has_vectors, Flight opening) {
  check(shape);
  cost_chunk(meter, n, shape, has_vectors, opening);
}

void split_lookup(ot::Party& party, const SplitLookupShape& shape,
                  std::span<const std::span<const u64>> tables, std::span<const u64> x,
                  std::span<const std::span<u64>> found, std::span<u64> low) {
  check(shape, tables, x, found, low);
  if (!looks_up_by_one_hots(shape, party.correlation_bits)) {
    std::vector<u64> high(x.size());
    split_number(party, x, shape.index_bits + shape.place_bits, shape.place_bits, shape.low_bits,
                 high, low);
    return lookup_tables_xor(party, shape.index_bits, shape.widths, tables, high, found);
  }
  in_chunks(
      party, std::ssize(x),
      [&](ot::CostMeter& meter, i64 n) { cost_chunk(meter, n, shape, false, {}); },
      [&](i64 begin, i64 n) {
        std::vector<std::span<u64>> parts;
        for (std::span<u64> out : found) parts.push_back(out.subspan(begin, n));
        padded_chunk(party, shape, tables, x.subspan(begin, n), parts, low.subspan(begin, n));
      },
      one_hot_chunk(shape.index_bits));
}

void cost_split_lookup(ot::CostMeter& meter, i64 n, const SplitLookupShape& shape) {
  check(shape);
  if (!looks_up_by_one_hots(shape, meter.correlation_bits)) {
    cost_split_number(meter, n, shape.index_bits + shape.place_bits, shape.place_bits,
                      shape.low_bits);
    return cost_lookup_tables_xor(meter, n, shape.index_bits, shape.widths);
  }
  cost_in_chunks(
      meter, n, [&](ot::CostMeter& m, i64 count) { cost_chunk(m, count, shape, false, {}); },
      one_hot_chunk(shape.index_bits));
}

}  // namespace privml::twopc
