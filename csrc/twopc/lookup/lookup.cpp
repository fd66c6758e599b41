// SPDX-License-Identifier: Apache-2.0
#include "twopc/lookup/lookup.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "base/multiversion.h"
#include "ot/derive.h"
#include "twopc/compare/comparison_plan.h"
#include "twopc/lookup/lookup_two_level.h"
#include "twopc/lookup/one_hot.h"
#include "twopc/lookup/rotate.h"
#include "twopc/lookup/two_way_transfer.h"
#include "twopc/session/chunk.h"
#include "twopc/width/conversion.h"

namespace privml::twopc {
namespace {

constexpr int kLargestDirectBits = 8, kLargestIndexBits = 10;

enum class Sharing { additive, boolean };

void check(std::span<const u64> table, std::span<const u64> index, int index_bits, int width,
           std::span<u64> out) {
  expect(index_bits >= 1 && index_bits <= kLargestIndexBits,
         "lookup: index_bits must lie in 1..10");
  expect(width >= 1 && width <= 64, "lookup: width must lie in 1..64");
  expect(std::ssize(table) == i64{1} << index_bits,
         "lookup: the table must have 2^index_bits entries");
  expect(index.size() == out.size(), "lookup: index and output lengths differ");
}

// messages[i * 2^bits + j] = table[(index_i + j) mod 2^bits] - mask_i, or ^ mask_i.
PRIVML_TARGET_CLONES
void rotated_messages(const u64* table, const u64* index, const u64* mask, i64 count, int bits,
                      bool additive, u64* messages) {
  u64 turned[512];
  const i64 size = i64{1} << bits;
  for (i64 i = 0; i < count; ++i, messages += size) {
    rotate_table(table, bits, index[i], turned);
    if (additive) {
      for (i64 j = 0; j < size; ++j) messages[j] = turned[j] - mask[i];
    } else {
      for (i64 j = 0; j < size; ++j) messages[j] = turned[j] ^ mask[i];
    }
  }
}

// Bits on the wire of XOR-shared words made additive.
double conversion_bits(int width, double price) {
  return (width - 1) * (price + 1) + width * (width - 1) / 2.0;
}

enum class Form { direct, two_level, one_hot };

struct Priced {
  Form form;
  double bits;
};

// The form of those without one-hot vectors that takes fewest bits, if a correlation costs
// `price` and a message in a row kLevelBits.
Priced best_transfer(int index_bits, int width, Sharing sharing, double price) {
  const double extra = sharing == Sharing::additive ? conversion_bits(width, price) : 0;
  Priced best{Form::direct,
              index_bits * (price + 1) + std::ldexp(width, index_bits) + 2 * kLevelBits};
  if (index_bits < 2) return best;
  const Priced two{
      Form::two_level,
      two_level_bits(best_levels(index_bits, width, price), width, price) + extra + 3 * kLevelBits};
  return index_bits > kLargestDirectBits || two.bits < best.bits ? two : best;
}

// A correlation costs its bits on the wire and kComputingBits of work.
double price_of(double correlation_bits) { return correlation_bits + kComputingBits; }

Form form_of(int index_bits, int width, Sharing sharing, double correlation_bits) {
  const double price = price_of(correlation_bits);
  const double extra = sharing == Sharing::additive ? conversion_bits(width, price) : 0;
  const double bits =
      one_hot_bits(index_bits, price) + extra + kLevelBits * (one_hot_steps(index_bits) + 1);
  const Priced other = best_transfer(index_bits, width, sharing, price);
  return bits < other.bits ? Form::one_hot : other.form;
}

LookupLevels levels_of(int index_bits, int width, double correlation_bits) {
  return best_levels(index_bits, width, price_of(correlation_bits));
}

// Party 0 sends for the first half, party 1 for the rest.
void direct(ot::Party& party, std::span<const u64> table, std::span<const u64> index,
            int index_bits, int width, Sharing sharing, std::span<u64> out) {
  const size_t half = (index.size() + 1) / 2;
  const std::span<const u64> parts[2] = {index.first(half), index.subspan(half)};
  const std::span<u64> results[2] = {out.first(half), out.subspan(half)};
  const std::span<const u64> sent = parts[party.rank], picked = parts[1 - party.rank];
  const std::span<u64> mask = results[party.rank];

  std::vector<u8> choices(picked.size());
  for (size_t i = 0; i < picked.size(); ++i)
    choices[i] = static_cast<u8>(picked[i] & low_mask(index_bits));
  AlignedVector<u64> messages(sent.size() << index_bits);
  party.prg.fill_ring(mask, width);
  rotated_messages(table.data(), sent.data(), mask.data(), std::ssize(sent), index_bits,
                   sharing == Sharing::additive, messages.data());
  two_way_transfer(party, messages, choices, index_bits, width, results[1 - party.rank]);
}

void cost_direct(ot::CostMeter& meter, i64 count, int index_bits, int width) {
  cost_two_way_transfer(meter, {(count + 1) / 2, count / 2}, index_bits, width);
}

// Lookups of as many elements each by their one-hot vectors, step by step together.
struct OneHotLookup {
  std::span<const u64> index;
  int index_bits;
  std::vector<TableAt> tables;
};

void one_hot_lookups(ot::Party& party, std::span<const OneHotLookup> lookups) {
  std::vector<RandomOneHots> random(lookups.size());
  int steps = 0;
  for (size_t i = 0; i < lookups.size(); ++i) {
    draw_one_hots(party, std::ssize(lookups[i].index), lookups[i].index_bits, random[i]);
    steps = std::max(steps, one_hot_steps(lookups[i].index_bits));
  }
  for (RandomOneHots& one : random) begin_one_hots(party, one);
  for (int step = 0; step < steps; ++step)
    for (RandomOneHots& one : random) advance_one_hots(party, one);
  std::vector<AlignedVector<u64>> places(lookups.size());
  for (size_t i = 0; i < lookups.size(); ++i)
    write_places(party, random[i], lookups[i].index, places[i]);
  for (size_t i = 0; i < lookups.size(); ++i) {
    read_places(party, random[i], places[i]);
    look_up_at(random[i], places[i], lookups[i].tables);
  }
}

void cost_one_hot_lookups(ot::CostMeter& meter, i64 n, std::span<const int> index_bits) {
  int steps = 0;
  for (int bits : index_bits) {
    cost_draw_one_hots(meter, n, bits);
    steps = std::max(steps, one_hot_steps(bits));
  }
  Flight opening;
  for (int step = 0; step < steps; ++step) {
    Flight flight;
    for (int bits : index_bits)
      if (step < one_hot_steps(bits)) flight = flight + one_hot_flight(n, bits, step);
    cost_flight(meter, flight);
  }
  for (int bits : index_bits) opening = opening + open_places_flight(n, bits);
  cost_flight(meter, opening);
}

void lookup_chunk(ot::Party& party, std::span<const u64> table, std::span<const u64> index,
                  int index_bits, int width, Sharing sharing, std::span<u64> out) {
  const Form form = form_of(index_bits, width, sharing, party.correlation_bits);
  if (form == Form::direct) return direct(party, table, index, index_bits, width, sharing, out);
  std::vector<u64> words(sharing == Sharing::additive ? out.size() : 0);
  const std::span<u64> result = sharing == Sharing::additive ? std::span(words) : out;
  if (form == Form::one_hot) {
    const OneHotLookup lookups[] = {{index, index_bits, {{table, result}}}};
    one_hot_lookups(party, lookups);
  } else {
    const LookupLevels levels = levels_of(index_bits, width, party.correlation_bits);
    const LevelLookup lookups[] = {{table, index, levels, width, result}};
    lookup_two_level(party, lookups);
  }
  if (sharing == Sharing::additive) xor_to_additive(party, words, width, out);
}

void cost_chunk(ot::CostMeter& meter, i64 count, int index_bits, int width, Sharing sharing) {
  const Form form = form_of(index_bits, width, sharing, meter.correlation_bits);
  if (form == Form::direct) return cost_direct(meter, count, index_bits, width);
  if (form == Form::one_hot) {
    cost_one_hot_lookups(meter, count, std::array{index_bits});
  } else {
    const LevelShape shapes[] = {{levels_of(index_bits, width, meter.correlation_bits), width}};
    cost_lookup_two_level(meter, count, shapes);
  }
  if (sharing == Sharing::additive) cost_xor_to_additive(meter, count, width);
}

// Elements at once, so that messages of 2^row_bits words each stay bounded.
i64 chunk_limit(int row_bits) {
  return std::clamp((i64{1} << 18) >> row_bits, i64{1} << 12, kChunk);
}

i64 chunk_limit(int index_bits, int width, Sharing sharing, double correlation_bits) {
  const Form form = form_of(index_bits, width, sharing, correlation_bits);
  if (form == Form::direct) return chunk_limit(index_bits);
  if (form == Form::one_hot) return chunk_limit(index_bits / 2);
  const LookupLevels levels = levels_of(index_bits, width, correlation_bits);
  return chunk_limit(std::max(levels.row_bits, levels.column_bits));
}

i64 chunk_limit(std::span<const TableShape> shapes, double correlation_bits) {
  i64 limit = kChunk;
  for (const auto& [index_bits, width] : shapes)
    limit = std::min(limit, chunk_limit(index_bits, width, Sharing::boolean, correlation_bits));
  return limit;
}

void cost_together(ot::CostMeter& meter, i64 n, std::span<const TableShape> shapes) {
  std::vector<LevelShape> levels;
  std::vector<int> one_hots;
  for (const auto& [index_bits, width] : shapes) {
    switch (form_of(index_bits, width, Sharing::boolean, meter.correlation_bits)) {
      case Form::direct:
        cost_direct(meter, n, index_bits, width);
        break;
      case Form::two_level:
        levels.push_back({levels_of(index_bits, width, meter.correlation_bits), width});
        break;
      case Form::one_hot:
        one_hots.push_back(index_bits);
    }
  }
  if (!levels.empty()) cost_lookup_two_level(meter, n, levels);
  if (!one_hots.empty()) cost_one_hot_lookups(meter, n, one_hots);
}

void run(ot::Party& party, std::span<const u64> table, std::span<const u64> index, int index_bits,
         int width, Sharing sharing, std::span<u64> out) {
  check(table, index, index_bits, width, out);
  std::vector<u64> entries(table.begin(), table.end());
  for (u64& entry : entries) entry &= low_mask(width);
  in_chunks(
      party, std::ssize(index),
      [&](ot::CostMeter& m, i64 n) { cost_chunk(m, n, index_bits, width, sharing); },
      [&](i64 begin, i64 n) {
        lookup_chunk(party, entries, index.subspan(begin, n), index_bits, width, sharing,
                     out.subspan(begin, n));
      },
      chunk_limit(index_bits, width, sharing, party.correlation_bits));
}

void cost(ot::CostMeter& meter, i64 count, int index_bits, int width, Sharing sharing) {
  cost_in_chunks(
      meter, count, [&](ot::CostMeter& m, i64 n) { cost_chunk(m, n, index_bits, width, sharing); },
      chunk_limit(index_bits, width, sharing, meter.correlation_bits));
}

void cost_transfer_chunk(ot::CostMeter& meter, int sender, i64 count, int index_bits, int width) {
  ot::cost_choose(meter, sender, count * index_bits);
  ot::cost_one_of_n(meter, sender, count, index_bits, width);
}

}  // namespace

void lookup(ot::Party& party, std::span<const u64> table, std::span<const u64> index,
            int index_bits, int width, std::span<u64> out) {
  run(party, table, index, index_bits, width, Sharing::additive, out);
}

void cost_lookup(ot::CostMeter& meter, i64 count, int index_bits, int width) {
  cost(meter, count, index_bits, width, Sharing::additive);
}

void lookup_xor(ot::Party& party, std::span<const u64> table, std::span<const u64> index,
                int index_bits, int width, std::span<u64> out) {
  run(party, table, index, index_bits, width, Sharing::boolean, out);
}

void cost_lookup_xor(ot::CostMeter& meter, i64 count, int index_bits, int width) {
  cost(meter, count, index_bits, width, Sharing::boolean);
}

void lookups_xor(ot::Party& party, std::span<const TableLookup> lookups) {
  std::vector<TableShape> shapes;
  std::vector<std::vector<u64>> tables;
  for (const auto& [table, index, index_bits, width, out] : lookups) {
    check(table, index, index_bits, width, out);
    expect(index.size() == lookups[0].index.size(), "lookups_xor: lengths differ");
    shapes.push_back({index_bits, width});
    tables.emplace_back(table.begin(), table.end());
    for (u64& entry : tables.back()) entry &= low_mask(width);
  }
  if (lookups.empty()) return;
  in_chunks(
      party, std::ssize(lookups[0].index),
      [&](ot::CostMeter& m, i64 n) { cost_together(m, n, shapes); },
      [&](i64 begin, i64 n) {
        std::vector<LevelLookup> levels;
        std::vector<OneHotLookup> one_hots;
        for (size_t i = 0; i < lookups.size(); ++i) {
          const auto [index_bits, width] = shapes[i];
          const auto index = lookups[i].index.subspan(begin, n);
          const auto out = lookups[i].out.subspan(begin, n);
          switch (form_of(index_bits, width, Sharing::boolean, party.correlation_bits)) {
            case Form::direct:
              direct(party, tables[i], index, index_bits, width, Sharing::boolean, out);
              break;
            case Form::two_level:
              levels.push_back({tables[i], index,
                                levels_of(index_bits, width, party.correlation_bits), width, out});
              break;
            case Form::one_hot:
              one_hots.push_back({index, index_bits, {{tables[i], out}}});
          }
        }
        if (!levels.empty()) lookup_two_level(party, levels);
        if (!one_hots.empty()) one_hot_lookups(party, one_hots);
      },
      chunk_limit(shapes, party.correlation_bits));
}

void cost_lookups_xor(ot::CostMeter& meter, i64 count, std::span<const TableShape> shapes) {
  if (shapes.empty()) return;
  cost_in_chunks(
      meter, count, [&](ot::CostMeter& m, i64 n) { cost_together(m, n, shapes); },
      chunk_limit(shapes, meter.correlation_bits));
}

bool prefers_one_hot(int index_bits, std::span<const int> widths, double correlation_bits) {
  const double price = price_of(correlation_bits);
  double others = 0;
  for (int width : widths)
    others += best_transfer(index_bits, width, Sharing::boolean, price).bits - 2 * kLevelBits;
  return one_hot_bits(index_bits, price) < others;
}

void lookup_tables_xor(ot::Party& party, int index_bits, std::span<const int> widths,
                       std::span<const std::span<const u64>> tables, std::span<const u64> index,
                       std::span<const std::span<u64>> found) {
  expect(tables.size() == widths.size() && found.size() == widths.size(),
         "lookup_tables_xor: lengths differ");
  if (!prefers_one_hot(index_bits, widths, party.correlation_bits)) {
    std::vector<TableLookup> lookups;
    for (size_t t = 0; t < tables.size(); ++t)
      lookups.push_back({tables[t], index, index_bits, widths[t], found[t]});
    return lookups_xor(party, lookups);
  }
  std::vector<std::vector<u64>> entries;
  for (size_t t = 0; t < tables.size(); ++t) {
    check(tables[t], index, index_bits, widths[t], found[t]);
    entries.emplace_back(tables[t].begin(), tables[t].end());
    for (u64& entry : entries.back()) entry &= low_mask(widths[t]);
  }
  in_chunks(
      party, std::ssize(index),
      [&](ot::CostMeter& m, i64 n) { cost_one_hot_lookups(m, n, std::array{index_bits}); },
      [&](i64 begin, i64 n) {
        OneHotLookup lookup{index.subspan(begin, n), index_bits, {}};
        for (size_t t = 0; t < tables.size(); ++t)
          lookup.tables.push_back({entries[t], found[t].subspan(begin, n)});
        one_hot_lookups(party, std::span(&lookup, 1));
      },
      chunk_limit(index_bits / 2));
}

void cost_lookup_tables_xor(ot::CostMeter& meter, i64 n, int index_bits,
                            std::span<const int> widths) {
  if (!prefers_one_hot(index_bits, widths, meter.correlation_bits)) {
    std::vector<TableShape> shapes;
    for (int width : widths) shapes.push_back({index_bits, width});
    return cost_lookups_xor(meter, n, shapes);
  }
  cost_in_chunks(
      meter, n,
      [&](ot::CostMeter& m, i64 k) { cost_one_hot_lookups(m, k, std::array{index_bits}); },
      chunk_limit(index_bits / 2));
}

void transfer_one_of_n_send(ot::Party& party, std::span<const u64> messages, int index_bits,
                            int width) {
  expect(index_bits >= 1 && index_bits <= 8 && width >= 1 && width <= 64,
         "transfer_one_of_n: index_bits must lie in 1..8, width in 1..64");
  expect(messages.size() % (size_t{1} << index_bits) == 0,
         "transfer_one_of_n: 2^index_bits messages per instance");
  in_chunks(
      party, std::ssize(messages) >> index_bits,
      [&](ot::CostMeter& m, i64 n) { cost_transfer_chunk(m, party.rank, n, index_bits, width); },
      [&](i64 begin, i64 n) {
        WipedVector<crypto::Block> q(n * index_bits);
        ot::choose_send(party, q.data(), std::ssize(q));
        ot::one_of_n_send(party, q.data(), index_bits, width,
                          messages.subspan(begin << index_bits, n << index_bits));
      },
      chunk_limit(index_bits));
}

void transfer_one_of_n_receive(ot::Party& party, std::span<const u8> choices, int index_bits,
                               int width, std::span<u64> out) {
  expect(index_bits >= 1 && index_bits <= 8 && width >= 1 && width <= 64,
         "transfer_one_of_n: index_bits must lie in 1..8, width in 1..64");
  expect(choices.size() == out.size(), "transfer_one_of_n: lengths differ");
  in_chunks(
      party, std::ssize(choices),
      [&](ot::CostMeter& m, i64 n) {
        cost_transfer_chunk(m, 1 - party.rank, n, index_bits, width);
      },
      [&](i64 begin, i64 n) {
        WipedVector<crypto::Block> t(n * index_bits);
        ot::choose_digits_receive(party, choices.subspan(begin, n), index_bits, t.data());
        ot::one_of_n_receive(party, t.data(), choices.subspan(begin, n), index_bits, width,
                             out.subspan(begin, n));
      },
      chunk_limit(index_bits));
}

void cost_transfer_one_of_n(ot::CostMeter& meter, int sender, i64 count, int index_bits,
                            int width) {
  cost_in_chunks(
      meter, count,
      [&](ot::CostMeter& m, i64 n) { cost_transfer_chunk(m, sender, n, index_bits, width); },
      chunk_limit(index_bits));
}

}  // namespace privml::twopc
