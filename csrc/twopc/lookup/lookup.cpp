// SPDX-License-Identifier: Apache-2.0
#include "twopc/lookup/lookup.h"

#include <algorithm>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "base/multiversion.h"
#include "ot/derive.h"
#include "twopc/lookup/lookup_two_level.h"
#include "twopc/lookup/rotate.h"
#include "twopc/lookup/two_way_transfer.h"
#include "twopc/product/cross_terms.h"
#include "twopc/session/chunk.h"
#include "twopc/width/conversion.h"

namespace privml {
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

i64 direct_bits(int index_bits, int width) {
  return index_bits * kCorrelationBits + (i64{width} << index_bits);
}

// Bits of XOR-shared words made additive.
i64 conversion_bits(int width) {
  return (width - 1) * kCorrelationBits + i64{width} * (width - 1) / 2;
}

bool two_levels(int index_bits, int width, Sharing sharing) {
  if (index_bits < 2) return false;
  if (index_bits > kLargestDirectBits) return true;
  const i64 extra = sharing == Sharing::additive ? conversion_bits(width) : 0;
  return two_level_bits(best_levels(index_bits, width), width) + extra <
         direct_bits(index_bits, width);
}

// Party 0 sends for the first half, party 1 for the rest.
void direct(Party& party, std::span<const u64> table, std::span<const u64> index, int index_bits,
            int width, Sharing sharing, std::span<u64> out) {
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

void cost_direct(CostMeter& meter, i64 count, int index_bits, int width) {
  cost_two_way_transfer(meter, {(count + 1) / 2, count / 2}, index_bits, width);
}

void lookup_chunk(Party& party, std::span<const u64> table, std::span<const u64> index,
                  int index_bits, int width, Sharing sharing, std::span<u64> out) {
  if (!two_levels(index_bits, width, sharing))
    return direct(party, table, index, index_bits, width, sharing, out);
  const LookupLevels levels = best_levels(index_bits, width);
  std::vector<u64> words(sharing == Sharing::additive ? out.size() : 0);
  const std::span<u64> result = sharing == Sharing::additive ? std::span(words) : out;
  const LevelLookup lookups[] = {{table, index, levels, width, result}};
  lookup_two_level(party, lookups);
  if (sharing == Sharing::additive) xor_to_additive(party, words, width, out);
}

void cost_chunk(CostMeter& meter, i64 count, int index_bits, int width, Sharing sharing) {
  if (!two_levels(index_bits, width, sharing)) return cost_direct(meter, count, index_bits, width);
  const LevelShape shapes[] = {{best_levels(index_bits, width), width}};
  cost_lookup_two_level(meter, count, shapes);
  if (sharing == Sharing::additive) cost_xor_to_additive(meter, count, width);
}

// Elements at once, so that messages of 2^row_bits words each stay bounded.
i64 chunk_limit(int row_bits) {
  return std::clamp((i64{1} << 18) >> row_bits, i64{1} << 12, kChunk);
}

i64 chunk_limit(int index_bits, int width, Sharing sharing) {
  if (!two_levels(index_bits, width, sharing)) return chunk_limit(index_bits);
  const LookupLevels levels = best_levels(index_bits, width);
  return chunk_limit(std::max(levels.row_bits, levels.column_bits));
}

i64 chunk_limit(std::span<const TableShape> shapes) {
  i64 limit = kChunk;
  for (const auto& [index_bits, width] : shapes)
    limit = std::min(limit, chunk_limit(index_bits, width, Sharing::boolean));
  return limit;
}

void cost_together(CostMeter& meter, i64 n, std::span<const TableShape> shapes) {
  std::vector<LevelShape> levels;
  for (const auto& [index_bits, width] : shapes) {
    if (two_levels(index_bits, width, Sharing::boolean)) {
      levels.push_back({best_levels(index_bits, width), width});
    } else {
      cost_direct(meter, n, index_bits, width);
    }
  }
  if (!levels.empty()) cost_lookup_two_level(meter, n, levels);
}

void run(Party& party, std::span<const u64> table, std::span<const u64> index, int index_bits,
         int width, Sharing sharing, std::span<u64> out) {
  check(table, index, index_bits, width, out);
  std::vector<u64> entries(table.begin(), table.end());
  for (u64& entry : entries) entry &= low_mask(width);
  in_chunks(
      party, std::ssize(index),
      [&](CostMeter& m, i64 n) { cost_chunk(m, n, index_bits, width, sharing); },
      [&](i64 begin, i64 n) {
        lookup_chunk(party, entries, index.subspan(begin, n), index_bits, width, sharing,
                     out.subspan(begin, n));
      },
      chunk_limit(index_bits, width, sharing));
}

void cost(CostMeter& meter, i64 count, int index_bits, int width, Sharing sharing) {
  cost_in_chunks(
      meter, count, [&](CostMeter& m, i64 n) { cost_chunk(m, n, index_bits, width, sharing); },
      chunk_limit(index_bits, width, sharing));
}

void cost_transfer_chunk(CostMeter& meter, int sender, i64 count, int index_bits, int width) {
  cost_choose(meter, sender, count * index_bits);
  cost_one_of_n(meter, sender, count, index_bits, width);
}

}  // namespace

void lookup(Party& party, std::span<const u64> table, std::span<const u64> index, int index_bits,
            int width, std::span<u64> out) {
  run(party, table, index, index_bits, width, Sharing::additive, out);
}

void cost_lookup(CostMeter& meter, i64 count, int index_bits, int width) {
  cost(meter, count, index_bits, width, Sharing::additive);
}

void lookup_xor(Party& party, std::span<const u64> table, std::span<const u64> index,
                int index_bits, int width, std::span<u64> out) {
  run(party, table, index, index_bits, width, Sharing::boolean, out);
}

void cost_lookup_xor(CostMeter& meter, i64 count, int index_bits, int width) {
  cost(meter, count, index_bits, width, Sharing::boolean);
}

void lookups_xor(Party& party, std::span<const TableLookup> lookups) {
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
      [&](CostMeter& m, i64 n) { cost_together(m, n, shapes); },
      [&](i64 begin, i64 n) {
        std::vector<LevelLookup> levels;
        for (size_t i = 0; i < lookups.size(); ++i) {
          const auto [index_bits, width] = shapes[i];
          const auto index = lookups[i].index.subspan(begin, n);
          const auto out = lookups[i].out.subspan(begin, n);
          if (two_levels(index_bits, width, Sharing::boolean)) {
            levels.push_back({tables[i], index, best_levels(index_bits, width), width, out});
          } else {
            direct(party, tables[i], index, index_bits, width, Sharing::boolean, out);
          }
        }
        if (!levels.empty()) lookup_two_level(party, levels);
      },
      chunk_limit(shapes));
}

void cost_lookups_xor(CostMeter& meter, i64 count, std::span<const TableShape> shapes) {
  if (shapes.empty()) return;
  cost_in_chunks(
      meter, count, [&](CostMeter& m, i64 n) { cost_together(m, n, shapes); }, chunk_limit(shapes));
}

void transfer_one_of_n_send(Party& party, std::span<const u64> messages, int index_bits,
                            int width) {
  expect(index_bits >= 1 && index_bits <= 8 && width >= 1 && width <= 64,
         "transfer_one_of_n: index_bits must lie in 1..8, width in 1..64");
  expect(messages.size() % (size_t{1} << index_bits) == 0,
         "transfer_one_of_n: 2^index_bits messages per instance");
  in_chunks(
      party, std::ssize(messages) >> index_bits,
      [&](CostMeter& m, i64 n) { cost_transfer_chunk(m, party.rank, n, index_bits, width); },
      [&](i64 begin, i64 n) {
        WipedVector<Block> q(n * index_bits);
        choose_send(party, q.data(), std::ssize(q));
        one_of_n_send(party, q.data(), index_bits, width,
                      messages.subspan(begin << index_bits, n << index_bits));
      },
      chunk_limit(index_bits));
}

void transfer_one_of_n_receive(Party& party, std::span<const u8> choices, int index_bits, int width,
                               std::span<u64> out) {
  expect(index_bits >= 1 && index_bits <= 8 && width >= 1 && width <= 64,
         "transfer_one_of_n: index_bits must lie in 1..8, width in 1..64");
  expect(choices.size() == out.size(), "transfer_one_of_n: lengths differ");
  in_chunks(
      party, std::ssize(choices),
      [&](CostMeter& m, i64 n) { cost_transfer_chunk(m, 1 - party.rank, n, index_bits, width); },
      [&](i64 begin, i64 n) {
        WipedVector<Block> t(n * index_bits);
        choose_digits_receive(party, choices.subspan(begin, n), index_bits, t.data());
        one_of_n_receive(party, t.data(), choices.subspan(begin, n), index_bits, width,
                         out.subspan(begin, n));
      },
      chunk_limit(index_bits));
}

void cost_transfer_one_of_n(CostMeter& meter, int sender, i64 count, int index_bits, int width) {
  cost_in_chunks(
      meter, count,
      [&](CostMeter& m, i64 n) { cost_transfer_chunk(m, sender, n, index_bits, width); },
      chunk_limit(index_bits));
}

}  // namespace privml
