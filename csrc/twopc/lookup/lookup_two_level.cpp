// SPDX-License-Identifier: Apache-2.0
#include "twopc/lookup/lookup_two_level.h"

#include <vector>

#include "base/multiversion.h"
#include "ot/derive.h"
#include "twopc/lookup/rotate.h"

namespace privml::twopc {
namespace {

int sum_bits(LookupLevels levels) { return (2 << levels.column_bits) - 1; }

// column[h] = XOR over s of one_hot[s] & table[(h * 2^column_bits + s) mod size], for one element.
// `rows` holds the table transposed: rows[s * 2^row_bits + h].
template <class Word>
[[gnu::always_inline]] inline void select_columns(const Word* rows, const u64* one_hot, i64 count,
                                                  i64 sums, i64 height, Word* columns) {
  for (i64 i = 0; i < count; ++i, columns += height) {
    for (i64 h = 0; h < height; ++h) columns[h] = 0;
    for (i64 s = 0; s < sums; ++s) {
      const Word mask = Word{0} - static_cast<Word>((one_hot[i] >> s) & 1);
      for (i64 h = 0; h < height; ++h) columns[h] ^= rows[s * height + h] & mask;
    }
  }
}

PRIVML_TARGET_CLONES
void select16(const u16* rows, const u64* one_hot, i64 count, i64 sums, i64 height, u16* columns) {
  select_columns(rows, one_hot, count, sums, height, columns);
}

PRIVML_TARGET_CLONES
void select32(const u32* rows, const u64* one_hot, i64 count, i64 sums, i64 height, u32* columns) {
  select_columns(rows, one_hot, count, sums, height, columns);
}

PRIVML_TARGET_CLONES
void select64(const u64* rows, const u64* one_hot, i64 count, i64 sums, i64 height, u64* columns) {
  select_columns(rows, one_hot, count, sums, height, columns);
}

// messages[i * 2^row_bits + j] = column_i[(high_i + j) mod 2^row_bits] ^ mask_i.
template <class Word>
void row_messages(const std::vector<Word>& columns, std::span<const u8> high,
                  const std::vector<u64>& mask, int row_bits, std::vector<u64>& messages) {
  std::vector<Word> turned(size_t{2} << row_bits);
  const i64 height = i64{1} << row_bits;
  for (size_t i = 0; i < high.size(); ++i) {
    rotate_table(columns.data() + i * height, row_bits, high[i], turned.data());
    for (i64 j = 0; j < height; ++j) messages[i * height + j] = turned[j] ^ mask[i];
  }
}

// Everything one party knows of the elements for which it makes the one-hot vectors (`makes`) or
// picks them.
struct Side {
  bool makes;
  std::vector<u8> low, high;
  std::vector<u64> one_hot;  // this party's share
  std::vector<u64> mask;     // of the rows that this party sends
  WipedVector<crypto::Block> low_cots, send_rows, pick_rows;
};

Side split_index(std::span<const u64> index, LookupLevels levels, bool makes) {
  Side side;
  side.makes = makes;
  for (u64 value : index) {
    side.low.push_back(static_cast<u8>(value & low_mask(levels.column_bits)));
    side.high.push_back(static_cast<u8>((value >> levels.column_bits) & low_mask(levels.row_bits)));
  }
  side.low_cots.resize(index.size() * levels.column_bits);
  side.send_rows.resize(index.size() * levels.row_bits);
  side.pick_rows.resize(index.size() * levels.row_bits);
  return side;
}

void write_choices(ot::Party& party, Side& side, LookupLevels levels) {
  if (!side.makes)
    ot::choose_digits_receive(party, side.low, levels.column_bits, side.low_cots.data());
  ot::choose_digits_receive(party, side.high, levels.row_bits, side.pick_rows.data());
}

void read_choices(ot::Party& party, Side& side) {
  if (side.makes) ot::choose_send(party, side.low_cots.data(), std::ssize(side.low_cots));
  ot::choose_send(party, side.send_rows.data(), std::ssize(side.send_rows));
}

void send_one_hot(ot::Party& party, Side& side, LookupLevels levels) {
  const int width = sum_bits(levels), column_bits = levels.column_bits;
  side.one_hot.resize(side.low.size());
  party.prg.fill_ring(side.one_hot, width);
  std::vector<u64> messages(side.low.size() << column_bits);
  for (size_t i = 0; i < side.low.size(); ++i)
    for (u64 j = 0; j < u64{1} << column_bits; ++j)
      messages[(i << column_bits) + j] = (u64{1} << (side.low[i] + j)) ^ side.one_hot[i];
  ot::one_of_n_send(party, side.low_cots.data(), column_bits, width, messages);
}

void receive_one_hot(ot::Party& party, Side& side, LookupLevels levels) {
  side.one_hot.resize(side.low.size());
  ot::one_of_n_receive(party, side.low_cots.data(), side.low, levels.column_bits, sum_bits(levels),
                       side.one_hot);
}

template <class Word, class Select>
void send_columns(ot::Party& party, Side& side, const LevelLookup& lookup, Select&& select) {
  const LookupLevels levels = lookup.levels;
  const i64 sums = sum_bits(levels), height = i64{1} << levels.row_bits;
  std::vector<Word> rows(sums * height), columns(side.low.size() * height);
  for (i64 s = 0; s < sums; ++s)
    for (i64 h = 0; h < height; ++h)
      rows[s * height + h] = static_cast<Word>(
          lookup.table[((h << levels.column_bits) + s) & (lookup.table.size() - 1)]);
  select(rows.data(), side.one_hot.data(), std::ssize(side.one_hot), sums, height, columns.data());
  side.mask.resize(side.low.size());
  party.prg.fill_ring(side.mask, lookup.width);
  std::vector<u64> messages(columns.size());
  row_messages(columns, side.high, side.mask, levels.row_bits, messages);
  ot::one_of_n_send(party, side.send_rows.data(), levels.row_bits, lookup.width, messages);
}

void send_rows(ot::Party& party, Side& side, const LevelLookup& lookup) {
  if (lookup.width <= 16) {
    send_columns<u16>(party, side, lookup, select16);
  } else if (lookup.width <= 32) {
    send_columns<u32>(party, side, lookup, select32);
  } else {
    send_columns<u64>(party, side, lookup, select64);
  }
}

void receive_rows(ot::Party& party, Side& side, const LevelLookup& lookup, std::span<u64> out) {
  ot::one_of_n_receive(party, side.pick_rows.data(), side.high, lookup.levels.row_bits,
                       lookup.width, out);
  for (size_t i = 0; i < out.size(); ++i) out[i] ^= side.mask[i];
}

// One lookup: the elements for which this party makes the one-hot vectors, and the others.
struct Halved {
  const LevelLookup& lookup;
  Side made, picked;
  std::span<u64> made_out, picked_out;
};

// Party 0 makes the one-hot vectors of the first half, party 1 those of the rest.
Halved halved(int rank, const LevelLookup& lookup) {
  const size_t half = (lookup.index.size() + 1) / 2;
  const std::span<const u64> parts[2] = {lookup.index.first(half), lookup.index.subspan(half)};
  const std::span<u64> results[2] = {lookup.out.first(half), lookup.out.subspan(half)};
  return {lookup, split_index(parts[rank], lookup.levels, true),
          split_index(parts[1 - rank], lookup.levels, false), results[rank], results[1 - rank]};
}

i64 choice_bytes(i64 picked, i64 made, LookupLevels levels) {
  return packed_bytes(picked * levels.column_bits, 1) + packed_bytes(picked * levels.row_bits, 1) +
         packed_bytes(made * levels.row_bits, 1);
}

}  // namespace

double two_level_bits(LookupLevels levels, int width, double correlation_bits) {
  const i64 columns = i64{1} << levels.column_bits, rows = i64{1} << levels.row_bits;
  return (levels.column_bits + 2 * levels.row_bits) * (correlation_bits + 1) +
         static_cast<double>(columns * sum_bits(levels) + 2 * rows * width);
}

LookupLevels best_levels(int index_bits, int width, double correlation_bits) {
  LookupLevels best{index_bits - 1, 1};
  for (int column_bits = 2; column_bits <= 5 && column_bits < index_bits; ++column_bits) {
    const LookupLevels levels{index_bits - column_bits, column_bits};
    if (levels.row_bits > 8) continue;
    if (two_level_bits(levels, width, correlation_bits) <
        two_level_bits(best, width, correlation_bits))
      best = levels;
  }
  return best;
}

void lookup_two_level(ot::Party& party, std::span<const LevelLookup> lookups) {
  std::vector<Halved> all;
  for (const LevelLookup& lookup : lookups) all.push_back(halved(party.rank, lookup));
  for (Halved& one : all) {
    write_choices(party, one.picked, one.lookup.levels);
    write_choices(party, one.made, one.lookup.levels);
  }
  for (Halved& one : all) {
    read_choices(party, one.made);
    read_choices(party, one.picked);
  }
  for (Halved& one : all) {
    send_one_hot(party, one.made, one.lookup.levels);
    send_rows(party, one.made, one.lookup);
  }
  for (Halved& one : all) {
    receive_one_hot(party, one.picked, one.lookup.levels);
    send_rows(party, one.picked, one.lookup);
    receive_rows(party, one.picked, one.lookup, one.picked_out);
  }
  for (Halved& one : all) receive_rows(party, one.made, one.lookup, one.made_out);
}

void cost_lookup_two_level(ot::CostMeter& meter, i64 count, std::span<const LevelShape> shapes) {
  const std::array<i64, 2> made{(count + 1) / 2, count / 2};
  std::array<i64, 2> choices{}, first{}, second{};
  for (const auto& [levels, width] : shapes) {
    const int row_bits = levels.row_bits, column_bits = levels.column_bits;
    for (int r : {0, 1}) {
      meter.draw(r, made[r] * column_bits + count * row_bits);
      choices[r] += choice_bytes(made[1 - r], made[r], levels);
      first[r] += packed_bytes(made[r] << column_bits, sum_bits(levels)) +
                  packed_bytes(made[r] << row_bits, width);
      second[r] += packed_bytes(made[1 - r] << row_bits, width);
    }
  }
  meter.exchange(choices[0], choices[1]);
  meter.exchange(first[0], first[1]);
  meter.exchange(second[0], second[1]);
}

}  // namespace privml::twopc
