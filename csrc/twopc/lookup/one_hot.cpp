// SPDX-License-Identifier: Apache-2.0
#include "twopc/lookup/one_hot.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/error.h"
#include "base/multiversion.h"
#include "base/pack.h"
#include "ot/derive.h"
#include "twopc/select/bit_products.h"
#include "twopc/session/chunk.h"

namespace privml::twopc {
namespace {

constexpr i64 kTile = 512;
constexpr int kLeafBits = 2;
constexpr int kLargestRow = 5;  // log2 of the bits of a row

int row_bits_of(int bits) { return bits > kLargestRow ? bits / 2 : 0; }

int append_nodes(std::vector<OneHotNode>& nodes, int offset, int bits) {
  OneHotNode node{offset, bits, 0, -1, -1};
  if (bits > kLeafBits) {
    const int high = bits / 2, low = bits - high;
    node.low = append_nodes(nodes, offset, low);
    node.high = append_nodes(nodes, offset + low, high);
    node.level = 1 + std::max(nodes[node.low].level, nodes[node.high].level);
  }
  nodes.push_back(node);
  return static_cast<int>(nodes.size()) - 1;
}

std::vector<OneHotNode> nodes_of(int bits) {
  expect(bits >= 1 && bits <= 10, "one-hot vectors: bits must lie in 1..10");
  std::vector<OneHotNode> nodes;
  append_nodes(nodes, 0, bits);
  return nodes;
}

// Choices of a product's instance, and bits of each message.
i64 choices_of(const std::vector<OneHotNode>& nodes, const OneHotNode& node) {
  return (i64{1} << nodes[node.high].bits) - 1;
}
int message_bits(const std::vector<OneHotNode>& nodes, const OneHotNode& node) {
  return (1 << nodes[node.low].bits) - 1;
}

std::vector<int> products_of_level(const std::vector<OneHotNode>& nodes, int level) {
  std::vector<int> products;
  for (int i = 0; i < std::ssize(nodes); ++i)
    if (nodes[i].level == level) products.push_back(i);
  return products;
}

// --- Leaves.
void make_leaf(ot::Party& party, RandomOneHots& state, const OneHotNode& node,
               AlignedVector<u32>& vector) {
  const i64 n = state.n;
  const u8 first = party.rank == 0 ? 1 : 0;
  std::vector<u8> a(n), b(n), c(n);
  if (node.bits == 1) {
    party.prg.fill_bits(b);
  } else {
    ot::bit_triples(party, n, 1, a, b, c);
  }
  vector.resize(n);
  for (i64 i = 0; i < n; ++i) {
    const u32 neither = a[i] ^ b[i] ^ c[i] ^ first, one = b[i] ^ c[i], two = a[i] ^ c[i];
    vector[i] = neither | one << 1 | two << 2 | static_cast<u32>(c[i]) << 3;
    state.words[i] |= static_cast<u64>(b[i] | a[i] << 1) << node.offset;
  }
  if (node.bits == 1)
    for (u32& entries : vector) entries &= 3;
}

// --- Choices, imposed on the correlations that were drawn for them.
void draw_transfer(ot::Party& party, i64 sent, i64 chosen, OneHotTransfer& transfer) {
  transfer.sent.resize(sent);
  transfer.chosen.resize(chosen);
  ot::draw_as_receiver(party, transfer.chosen.data(), chosen);
  ot::draw_as_sender(party, transfer.sent.data(), sent);
}

void write_choice_bits(ot::Party& party, const OneHotTransfer& transfer) {
  AlignedVector<u8> corrections(transfer.choices.size());
  for (size_t i = 0; i < corrections.size(); ++i)
    corrections[i] = transfer.choices[i] ^ crypto::low_bit(transfer.chosen[i]);
  write_bits(party, corrections);
}

void read_choice_bits(ot::Party& party, OneHotTransfer& transfer) {
  const crypto::Block delta = party.sender.delta();
  AlignedVector<u8> corrections(transfer.sent.size(), 0);
  read_bits_xor(party, corrections);
  for (size_t i = 0; i < corrections.size(); ++i)
    transfer.sent[i] ^= crypto::select(corrections[i], delta);
}

// --- XOR-correlated transfers of words of `width` bits: kept ^ received = choice * word.
void xor_send(ot::Party& party, OneHotTransfer& transfer, std::span<const u64> words, int width) {
  const i64 count = std::ssize(words);
  const crypto::Block delta = party.sender.delta();
  const u64 mask = low_mask(width);
  WipedVector<crypto::Block> pads(2 * kTile);
  std::array<u64, kTile> messages;
  std::vector<u8> packed(packed_bytes(kTile, width));
  transfer.kept.resize(count);
  for (i64 begin = 0; begin < count; begin += kTile) {
    const i64 part = std::min(kTile, count - begin);
    const crypto::Block* const q = transfer.sent.data() + begin;
    for (i64 i = 0; i < part; ++i) {
      pads[i] = q[i];
      pads[part + i] = q[i] ^ delta;
    }
    party.hash.hash(pads.data(), pads.data(), 2 * part);
    for (i64 i = 0; i < part; ++i) {
      transfer.kept[begin + i] = pads[i].lo & mask;
      messages[i] = (pads[i].lo ^ pads[part + i].lo ^ words[begin + i]) & mask;
    }
    pack(messages.data(), part, width, packed.data());
    party.channel.write({packed.data(), static_cast<size_t>(packed_bytes(part, width))});
  }
}

void xor_receive(ot::Party& party, OneHotTransfer& transfer, int width, std::span<u64> out) {
  const i64 count = std::ssize(out);
  const u64 mask = low_mask(width);
  WipedVector<crypto::Block> pads(kTile);
  std::vector<u8> packed(packed_bytes(kTile, width));
  for (i64 begin = 0; begin < count; begin += kTile) {
    const i64 part = std::min(kTile, count - begin);
    party.hash.hash(transfer.chosen.data() + begin, pads.data(), part);
    party.channel.read({packed.data(), static_cast<size_t>(packed_bytes(part, width))});
    unpack(packed.data(), part, width, out.data() + begin);
    for (i64 i = 0; i < part; ++i) {
      const u64 chosen = u64{0} - u64{transfer.choices[begin + i]};
      out[begin + i] = (out[begin + i] & chosen) ^ (pads[i].lo & mask);
    }
  }
}

// --- Products.
void write_product_choices(ot::Party& party, const RandomOneHots& state, OneHotTransfer& transfer) {
  const OneHotNode& node = state.nodes[transfer.node];
  const i64 choices = choices_of(state.nodes, node);
  const AlignedVector<u32>& high = state.vectors[node.high];
  transfer.choices.resize(state.n * choices);
  for (i64 i = 0; i < state.n; ++i)
    for (i64 h = 0; h < choices; ++h)
      transfer.choices[i * choices + h] = static_cast<u8>(high[i] >> (h + 1) & 1);
  write_choice_bits(party, transfer);
}

void write_product_stream(ot::Party& party, const RandomOneHots& state, OneHotTransfer& transfer) {
  const OneHotNode& node = state.nodes[transfer.node];
  const i64 choices = choices_of(state.nodes, node);
  const AlignedVector<u32>& low = state.vectors[node.low];
  AlignedVector<u64> words(state.n * choices);
  for (i64 i = 0; i < state.n; ++i)
    for (i64 h = 0; h < choices; ++h) words[i * choices + h] = low[i] >> 1;
  xor_send(party, transfer, words, message_bits(state.nodes, node));
}

// Rows of the outer product: row h's entries from 1 on are shares of high[h] * low[j]; its entry 0
// is what is missing to high[h], and row 0 what is missing to low.
template <class Store>
void read_product(ot::Party& party, const RandomOneHots& state, OneHotTransfer& transfer,
                  Store&& store) {
  const OneHotNode& node = state.nodes[transfer.node];
  const i64 choices = choices_of(state.nodes, node);
  const AlignedVector<u32>&high = state.vectors[node.high], &low = state.vectors[node.low];
  AlignedVector<u64> received(state.n * choices);
  xor_receive(party, transfer, message_bits(state.nodes, node), received);
  for (i64 i = 0; i < state.n; ++i) {
    u32 first = low[i];
    for (i64 h = 1; h <= choices; ++h) {
      const i64 at = i * choices + h - 1;
      const u32 selected = high[i] >> h & 1;
      const u32 others = static_cast<u32>(received[at] ^ transfer.kept[at]) ^
                         ((low[i] >> 1) & (u32{0} - selected));
      const u32 parity = static_cast<u32>(std::popcount(others)) & 1;
      const u32 row = others << 1 | (selected ^ parity);
      first ^= row;
      store(i, h, row);
    }
    store(i, 0, first);
  }
}

void finish_product(ot::Party& party, RandomOneHots& state, OneHotTransfer& transfer) {
  const OneHotNode& node = state.nodes[transfer.node];
  if (transfer.node + 1 == std::ssize(state.nodes) && state.row_bits > 0) {
    state.rows.resize(state.n << state.row_bits);
    read_product(party, state, transfer,
                 [&](i64 i, i64 h, u32 row) { state.rows[(i << state.row_bits) + h] = row; });
    return;
  }
  AlignedVector<u32>& out = state.vectors[transfer.node];
  out.assign(state.n, 0);
  const int row_size = 1 << state.nodes[node.low].bits;
  read_product(party, state, transfer,
               [&](i64 i, i64 h, u32 row) { out[i] |= row << (h * row_size); });
}

// --- The places: each party sends for one half; bit k contributes -2^(k + 1) a_k b_k.
void write_place_choices(ot::Party& party, const RandomOneHots& state, OneHotTransfer& transfer) {
  const Halves part = halves(party.rank, state.n);
  const int planes = state.bits - 1;
  transfer.choices.resize(part.receive_count * planes);
  for (int k = 0; k < planes; ++k)
    for (i64 i = 0; i < part.receive_count; ++i)
      transfer.choices[k * part.receive_count + i] =
          static_cast<u8>(state.words[part.receive_begin + i] >> k & 1);
  write_choice_bits(party, transfer);
}

void write_place_stream(ot::Party& party, RandomOneHots& state, OneHotTransfer& transfer) {
  const Halves part = halves(party.rank, state.n);
  AlignedVector<u64> bit(part.send_count), share(part.send_count);
  for (int k = 0; k + 1 < state.bits; ++k) {
    for (i64 i = 0; i < part.send_count; ++i) bit[i] = state.words[part.send_begin + i] >> k & 1;
    ot::additive_send(party, transfer.sent.data() + k * part.send_count, bit, 1, state.bits - 1 - k,
                      share);
    for (i64 i = 0; i < part.send_count; ++i)
      state.place[part.send_begin + i] -= share[i] << (k + 1);
  }
}

void read_place(ot::Party& party, RandomOneHots& state, const OneHotTransfer& transfer) {
  const Halves part = halves(party.rank, state.n);
  AlignedVector<u64> share(part.receive_count);
  for (int k = 0; k + 1 < state.bits; ++k) {
    const i64 at = k * part.receive_count;
    ot::additive_receive(
        party, transfer.chosen.data() + at,
        std::span<const u8>(transfer.choices).subspan(at, static_cast<size_t>(part.receive_count)),
        1, state.bits - 1 - k, share);
    for (i64 i = 0; i < part.receive_count; ++i)
      state.place[part.receive_begin + i] -= share[i] << (k + 1);
  }
}

void draw_transfers(ot::Party& party, RandomOneHots& state) {
  const Halves part = halves(party.rank, state.n);
  const int planes = state.bits - 1;
  for (int i = 0; i < std::ssize(state.nodes); ++i) {
    const OneHotNode& node = state.nodes[i];
    if (node.level == 0) continue;
    const i64 count = state.n * choices_of(state.nodes, node);
    draw_transfer(party, count, count, state.transfers.emplace_back(i, node.level));
  }
  draw_transfer(party, part.send_count * planes, part.receive_count * planes,
                state.transfers.emplace_back(-1, 1));
}

// Calls work(transfer) on those of a level.
template <class Work>
void for_level(RandomOneHots& state, int level, Work&& work) {
  for (OneHotTransfer& transfer : state.transfers)
    if (transfer.level == level) work(transfer);
}

void write_choices(ot::Party& party, RandomOneHots& state, int level) {
  for_level(state, level, [&](OneHotTransfer& transfer) {
    if (transfer.node >= 0) {
      write_product_choices(party, state, transfer);
    } else {
      write_place_choices(party, state, transfer);
    }
  });
}

void write_streams(ot::Party& party, RandomOneHots& state, int level) {
  for_level(state, level, [&](OneHotTransfer& transfer) { read_choice_bits(party, transfer); });
  for_level(state, level, [&](OneHotTransfer& transfer) {
    if (transfer.node >= 0) {
      write_product_stream(party, state, transfer);
    } else {
      write_place_stream(party, state, transfer);
    }
  });
}

void read_streams(ot::Party& party, RandomOneHots& state, int level) {
  for_level(state, level, [&](OneHotTransfer& transfer) {
    if (transfer.node >= 0) {
      finish_product(party, state, transfer);
    } else {
      read_place(party, state, transfer);
    }
    transfer = {transfer.node, transfer.level, {}, {}, {}, {}};
  });
}

// --- Tables.
PRIVML_TARGET_CLONES
void select32(const u32* rows, const u64* opened, i64 n, int row_bits, i64 row_size,
              const u32* table, u64* out) {
  const i64 height = i64{1} << row_bits;
  for (i64 i = 0; i < n; ++i) {
    const u32* entry = table + opened[i];
    u32 sum = 0;
    for (i64 h = 0; h < height; ++h, entry += row_size) {
      const u32 row = rows[i * height + h];
      for (i64 j = 0; j < row_size; ++j) sum ^= entry[j] & (u32{0} - (row >> j & 1));
    }
    out[i] = sum;
  }
}

PRIVML_TARGET_CLONES
void select64(const u32* rows, const u64* opened, i64 n, int row_bits, i64 row_size,
              const u64* table, u64* out) {
  const i64 height = i64{1} << row_bits;
  for (i64 i = 0; i < n; ++i) {
    const u64* entry = table + opened[i];
    u64 sum = 0;
    for (i64 h = 0; h < height; ++h, entry += row_size) {
      const u64 row = rows[i * height + h];
      for (i64 j = 0; j < row_size; ++j) sum ^= entry[j] & (u64{0} - (row >> j & 1));
    }
    out[i] = sum;
  }
}

}  // namespace

int one_hot_steps(int bits) { return bits == 1 ? 0 : 2 * std::max(1, nodes_of(bits).back().level); }

void draw_one_hots(ot::Party& party, i64 n, int bits, RandomOneHots& state) {
  state = {};
  state.n = n;
  state.bits = bits;
  state.row_bits = row_bits_of(bits);
  state.nodes = nodes_of(bits);
  state.vectors.resize(state.nodes.size());
  state.words.assign(n, 0);
  for (size_t i = 0; i < state.nodes.size(); ++i)
    if (state.nodes[i].level == 0) make_leaf(party, state, state.nodes[i], state.vectors[i]);
  state.place = state.words;
  if (one_hot_steps(bits) > 0) draw_transfers(party, state);
  if (bits <= kLeafBits) state.rows = state.vectors.back();
}

void begin_one_hots(ot::Party& party, RandomOneHots& state) { write_choices(party, state, 1); }

void advance_one_hots(ot::Party& party, RandomOneHots& state) {
  if (state.step == one_hot_steps(state.bits)) return;
  const int level = state.step / 2 + 1;
  if (state.step % 2 == 0) {
    write_streams(party, state, level);
  } else {
    read_streams(party, state, level);
    if (level < state.nodes.back().level) {
      write_choices(party, state, level + 1);
    } else if (state.row_bits == 0) {
      state.rows = state.vectors.back();
    }
  }
  ++state.step;
}

Flight one_hot_flight(i64 n, int bits, int step) {
  const std::vector<OneHotNode> nodes = nodes_of(bits);
  const i64 half = first_half(n);
  i64 both = 0;
  Flight places;
  for (int index : products_of_level(nodes, step / 2 + 1)) {
    const i64 count = n * choices_of(nodes, nodes[index]);
    both += packed_bytes(count, step % 2 == 0 ? 1 : message_bits(nodes, nodes[index]));
  }
  if (step == 0)
    places = {packed_bytes((n - half) * (bits - 1), 1), packed_bytes(half * (bits - 1), 1)};
  for (int k = 0; step == 1 && k + 1 < bits; ++k)
    places =
        places + Flight{packed_bytes(half, bits - 1 - k), packed_bytes(n - half, bits - 1 - k)};
  return places + Flight{both, both};
}

void cost_draw_one_hots(ot::CostMeter& meter, i64 n, int bits) {
  const std::vector<OneHotNode> nodes = nodes_of(bits);
  i64 both = 0;
  for (const OneHotNode& node : nodes) {
    if (node.level > 0) {
      both += n * choices_of(nodes, node);
    } else if (node.bits == kLeafBits) {
      ot::cost_bit_triples(meter, n);
    }
  }
  meter.draw(0, both + first_half(n) * (bits - 1));
  meter.draw(1, both + (n - first_half(n)) * (bits - 1));
}

i64 one_hot_chunk(int bits) { return std::min(kChunk, i64{1} << (24 - bits)); }

double one_hot_bits(int bits, double correlation_bits) {
  double wire = 2.0 * bits + (bits - 1) * (1 + correlation_bits) + bits * (bits - 1) / 2.0;
  const std::vector<OneHotNode> nodes = nodes_of(bits);
  for (const OneHotNode& node : nodes) {
    if (node.level > 0) {
      wire += 2.0 * static_cast<double>(choices_of(nodes, node)) *
              (1 + message_bits(nodes, node) + correlation_bits);
    } else if (node.bits == kLeafBits) {
      wire += 2 * correlation_bits;
    }
  }
  return wire;
}

void write_places(ot::Party& party, const RandomOneHots& random, std::span<const u64> index,
                  AlignedVector<u64>& opened) {
  const i64 n = random.n;
  opened.resize(n);
  for (i64 i = 0; i < n; ++i) opened[i] = (index[i] - random.place[i]) & low_mask(random.bits);
  std::vector<u8> packed(packed_bytes(n, random.bits));
  pack(opened.data(), n, random.bits, packed.data());
  party.channel.write(packed);
}

void read_places(ot::Party& party, const RandomOneHots& random, AlignedVector<u64>& opened) {
  const i64 n = random.n;
  AlignedVector<u64> theirs(n);
  std::vector<u8> packed(packed_bytes(n, random.bits));
  party.channel.read(packed);
  unpack(packed.data(), n, random.bits, theirs.data());
  for (i64 i = 0; i < n; ++i) opened[i] = (opened[i] + theirs[i]) & low_mask(random.bits);
}

Flight open_places_flight(i64 n, int bits) {
  return {packed_bytes(n, bits), packed_bytes(n, bits)};
}

void look_up_at(const RandomOneHots& random, std::span<const u64> opened,
                std::span<const TableAt> tables) {
  const i64 row_size = i64{1} << (random.bits - random.row_bits);
  for (const auto& [table, out] : tables) {
    u64 all = 0;
    for (u64 entry : table) all |= entry;
    // One after the other, so that no place wraps around.
    const auto twice = [&]<class Word>(std::vector<Word>& words) {
      words.reserve(2 * table.size());
      for (int copy = 0; copy < 2; ++copy)
        for (u64 entry : table) words.push_back(static_cast<Word>(entry));
      return words.data();
    };
    if (all <= low_mask(32)) {
      std::vector<u32> words;
      select32(random.rows.data(), opened.data(), random.n, random.row_bits, row_size, twice(words),
               out.data());
    } else {
      std::vector<u64> words;
      select64(random.rows.data(), opened.data(), random.n, random.row_bits, row_size, twice(words),
               out.data());
    }
  }
}

}  // namespace privml::twopc
