// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/vole/silent_vole.h"

#include "base/error.h"
#include "spdz2k/preprocessing/sacrifice.h"
#include "spdz2k/vole/proven_tree.h"

namespace privml::spdz2k {
namespace {

constexpr const char* kLabel = "privml spdz2k silent vole";
constexpr i64 kRows = 64;  // of the matrix, made at once

// Words from seeds, two blocks each.
template <class W>
void words_of(const crypto::CorrelationRobustHash& hash, std::span<const crypto::Block> seeds,
              W* words) {
  static_assert(sizeof(W) <= 2 * sizeof(crypto::Block));
  WipedVector<crypto::Block> blocks(2 * seeds.size());
  hash.expand(seeds.data(), std::ssize(seeds), 2, blocks.data());
  for (size_t i = 0; i < seeds.size(); ++i) std::memcpy(&words[i], &blocks[2 * i], sizeof(W));
}

// Moves entry y to y ^ place, exchanging neighbours of distance 2^b if bit b is set.
void reorder(std::span<crypto::Block> entries, u64 place) {
  for (size_t distance = 1; distance < entries.size(); distance *= 2, place >>= 1) {
    const u8 bit = static_cast<u8>(place & 1);
    for (size_t y = 0; y < entries.size(); ++y) {
      if ((y & distance) != 0) continue;
      const crypto::Block change = crypto::select(bit, entries[y] ^ entries[y + distance]);
      entries[y] ^= change;
      entries[y + distance] ^= change;
    }
  }
}

// Calls row(i, places) for every row of matrix `number`: ten places of the secret.
template <class Row>
void for_each_row(crypto::Block code, u64 number, i64 rows, Row&& row) {
  constexpr i64 weight = ot::LpnCode::kWeight, blocks = weight * kRows / 4;
  const crypto::Aes128 generator(code);
  alignas(64) std::array<crypto::Block, blocks> random;
  std::array<u32, weight * kRows> places;
  for (i64 first = 0; first < rows; first += kRows) {
    generator.encrypt_counter({static_cast<u64>(first / kRows * blocks), number}, random.data(),
                              blocks);
    std::memcpy(places.data(), random.data(), sizeof places);
    for (u32& place : places) {
      place = static_cast<u32>(u64{place} * static_cast<u64>(kRingLpn.secret) >> 32);
    }
    for (i64 i = 0; i < std::min(kRows, rows - first); ++i) {
      row(first + i, places.data() + i * weight);
    }
  }
}

}  // namespace

template <class R>
SilentVole<R>::SilentVole(Authentication<R>& authentication) : authentication_(authentication) {
  Session<R>& session = authentication.session();
  WipedVector<W> mine(kSpentVoles), macs(kSpentVoles);
  their_secret_.resize(kSpentVoles);
  session.prg.fill_bytes(bytes_of(std::span<W>(mine)));
  code_ = authentication.template authenticate<W>(mine, macs, their_secret_);
  const W alpha = static_cast<W>(session.alpha());
  my_secret_.resize(kSpentVoles);
  for (i64 i = 0; i < kSpentVoles; ++i) {
    my_secret_[i] = {mine[i], static_cast<W>(product(alpha, mine[i]) - macs[i])};
  }
  authentication.use_source(this);
}

template <class R>
SilentVole<R>::~SilentVole() {
  authentication_.use_source(nullptr);
}

template <class R>
void SilentVole<R>::draw(std::span<W> u, std::span<W> v, std::span<W> m) {
  for (;;) {
    const bool mine = u.size() > my_stock_.size(), theirs = m.size() > their_stock_.size();
    if (!mine && !theirs) break;
    extend(mine, theirs);
  }
  for (size_t i = 0; i < u.size(); ++i) {
    const Pair& pair = my_stock_[my_stock_.size() - 1 - i];
    u[i] = pair.u;
    v[i] = pair.v;
  }
  for (size_t i = 0; i < m.size(); ++i) m[i] = their_stock_[their_stock_.size() - 1 - i];
  // What is handed out leaves no copy behind.
  wipe(my_stock_.data() + my_stock_.size() - u.size(), u.size() * sizeof(Pair));
  wipe(their_stock_.data() + their_stock_.size() - m.size(), m.size() * sizeof(W));
  my_stock_.resize(my_stock_.size() - u.size());
  their_stock_.resize(their_stock_.size() - m.size());
}

// The key's side of all trees.
template <class R>
void SilentVole<R>::send_trees(std::span<W> m) {
  ot::Party& party = authentication_.party();
  constexpr int depth = kRingLpn.depth;
  const W alpha = static_cast<W>(authentication_.session().alpha());
  const crypto::Block delta = party.sender.delta();
  WipedVector<crypto::Block> keys(kRingLpn.choices()), shifted(kRingLpn.choices());
  ot::draw_as_sender(party, keys.data(), kRingLpn.choices());
  for (i64 i = 0; i < kRingLpn.choices(); ++i) shifted[i] = keys[i] ^ delta;
  party.hash.hash(keys.data(), keys.data(), kRingLpn.choices());
  party.hash.hash(shifted.data(), shifted.data(), kRingLpn.choices());
  for (i64 tree = 0; tree < kRingLpn.trees; ++tree) {
    const auto seeds =
        send_proven_tree(party, depth, keys.data() + tree * depth, shifted.data() + tree * depth);
    W* leaves = m.data() + tree * kRingLpn.leaves();
    words_of(party.hash, seeds, leaves);
    // Of u = 2x + 1 at the owner's place.
    const W spent = their_secret_[kRingLpn.secret + tree];
    W correction = static_cast<W>(spent + spent + alpha);
    for (i64 j = 0; j < kRingLpn.leaves(); ++j) correction -= leaves[j];
    write_column(party.channel, &correction, 1, kWideBits<R>);
  }
}

// The owner's side; whether all proofs hold.
template <class R>
bool SilentVole<R>::receive_trees(std::span<Pair> pairs) {
  ot::Party& party = authentication_.party();
  constexpr int depth = kRingLpn.depth;
  constexpr i64 size = kRingLpn.leaves();
  WipedVector<crypto::Block> keys(kRingLpn.choices());
  ot::draw_as_receiver(party, keys.data(), kRingLpn.choices());
  WipedVector<u8> choices(kRingLpn.choices());
  for (i64 i = 0; i < kRingLpn.choices(); ++i) choices[i] = crypto::low_bit(keys[i]);
  party.hash.hash(keys.data(), keys.data(), kRingLpn.choices());
  bool valid = true;
  WipedVector<W> words(size);
  for (i64 tree = 0; tree < kRingLpn.trees; ++tree) {
    u64 place = 0;
    for (int level = 0; level < depth; ++level) {
      place = place << 1 | (choices[tree * depth + level] ^ 1u);
    }
    WipedVector<crypto::Block> leaves =
        receive_proven_tree(party, depth, place, keys.data() + tree * depth, valid);
    W correction;
    read_column(party.channel, &correction, 1, kWideBits<R>);
    reorder(leaves, place);
    words_of(party.hash, leaves, words.data());
    // v is m but at the place, where it is 2 v' - correction - the other leaves.
    const Pair& spent = my_secret_[kRingLpn.secret + tree];
    const W noise = static_cast<W>(spent.u + spent.u + W(1));
    W at_place = static_cast<W>(spent.v + spent.v - correction);
    Pair* out = pairs.data() + tree * size;
    for (i64 j = 0; j < size; ++j) {
      const W here(static_cast<u64>(j) == place);
      const W other = product(static_cast<W>(W(1) - here), words[j]);
      at_place -= other;
      out[j] = {product(here, noise), other};
    }
    for (i64 j = 0; j < size; ++j) {
      out[j].v += product(W(static_cast<u64>(j) == place), at_place);
    }
  }
  return valid;
}

template <class R>
void SilentVole<R>::check(std::span<const Pair> pairs, std::span<const W> m) {
  Session<R>& session = authentication_.session();
  net::Channel& channel = session.channel;
  const crypto::Block seed = session.toss();
  std::vector<typename R::BitWord> chi(kRingLpn.samples());
  crypto::Prg(seed).fill_bytes(bytes_of(std::span(chi)));
  constexpr int bits = kWideBits<R>;
  const char* cheated = "silent VOLE: the peer's trees are not consistent";
  // Owner: y, then its sum of v. Key's side: its value, committed between the two.
  W y = my_secret_.back().u, v = my_secret_.back().v, value = their_secret_.back(), seen;
  for (size_t i = 0; i < pairs.size(); ++i) {
    y += product(W(chi[i]), pairs[i].u);
    v += product(W(chi[i]), pairs[i].v);
  }
  if (!pairs.empty()) write_column(channel, &y, 1, bits);
  std::vector<u8> opening(static_cast<size_t>(column_bytes(1, bits)) + sizeof(crypto::Block));
  if (!m.empty()) {
    for (size_t i = 0; i < m.size(); ++i) value += product(W(chi[i]), m[i]);
    read_column(channel, &seen, 1, bits);
    value -= product(static_cast<W>(session.alpha()), seen);
    std::memcpy(opening.data(), &value, opening.size() - sizeof(crypto::Block));
    session.prg.fill_bytes(MutableBytes(opening).last(sizeof(crypto::Block)));
    channel.write(commit(kLabel, session.rank, seed.lo, opening));
  }
  Commitment commitment;
  if (!pairs.empty()) {
    channel.read(commitment);
    write_column(channel, &v, 1, bits);
  }
  if (!m.empty()) {
    read_column(channel, &seen, 1, bits);
    if (!equal_modulo(seen, value, bits)) session.abort(cheated);
    channel.write(opening);
  }
  if (!pairs.empty()) {
    channel.read(opening);
    W theirs(0);
    std::memcpy(&theirs, opening.data(), opening.size() - sizeof(crypto::Block));
    if (!opens(commitment, kLabel, 1 - session.rank, seed.lo, opening) ||
        !equal_modulo(theirs, v, bits)) {
      session.abort(cheated);
    }
  }
}

template <class R>
void SilentVole<R>::extend(bool mine, bool theirs) {
  Session<R>& session = authentication_.session();
  session.require_alive();
  ot::reserve(authentication_.party(), theirs ? kRingLpn.choices() : 0,
              mine ? kRingLpn.choices() : 0);
  WipedVector<Pair> pairs(mine ? kRingLpn.samples() : 0);
  WipedVector<W> m(theirs ? kRingLpn.samples() : 0);
  if (theirs) send_trees(m);
  if (mine && !receive_trees(pairs)) {
    session.abort("silent VOLE: the peer's trees do not match their proof");
  }
  check(pairs, m);
  const auto number = [&](int owner) { return 2 * iterations_[owner]++ + static_cast<u64>(owner); };
  if (mine) {
    for_each_row(code_, number(session.rank), kRingLpn.samples(), [&](i64 i, const u32* places) {
      Pair sum = pairs[i];
      for (int j = 0; j < ot::LpnCode::kWeight; ++j) {
        sum.u += my_secret_[places[j]].u;
        sum.v += my_secret_[places[j]].v;
      }
      pairs[i] = sum;
    });
    std::copy(pairs.end() - kSpentVoles, pairs.end(), my_secret_.begin());
    my_stock_.insert(my_stock_.end(), pairs.begin(), pairs.end() - kSpentVoles);
  }
  if (theirs) {
    for_each_row(code_, number(1 - session.rank), kRingLpn.samples(),
                 [&](i64 i, const u32* places) {
                   for (int j = 0; j < ot::LpnCode::kWeight; ++j) m[i] += their_secret_[places[j]];
                 });
    std::copy(m.end() - kSpentVoles, m.end(), their_secret_.begin());
    their_stock_.insert(their_stock_.end(), m.begin(), m.end() - kSpentVoles);
  }
}

template <class R>
void cost_silent_vole_setup(ot::CostMeter& meter) {
  cost_authenticate<R>(meter, {kSpentVoles, kSpentVoles}, kWideBits<R>, false);
}

template <class R>
void cost_silent_vole(ot::CostMeter& meter, SilentVoleMeter& voles, std::array<i64, 2> n) {
  constexpr i64 word = column_bytes(1, kWideBits<R>);
  for (;;) {
    const std::array<i64, 2> needed{n[0] > voles.stock[0], n[1] > voles.stock[1]};
    if (needed[0] + needed[1] == 0) break;
    const i64 choices = kRingLpn.choices();
    // The key's side of party 0's correlations is party 1, which sends the OTs.
    meter.reserve(needed[1] * choices, needed[0] * choices);
    meter.draw(0, needed[1] * choices);
    meter.draw(1, needed[0] * choices);
    const i64 trees = kRingLpn.trees * (proven_tree_bytes(kRingLpn.depth) + word);
    const auto exchange = [&](i64 from_owner, i64 from_key) {
      meter.exchange(needed[0] * from_owner + needed[1] * from_key,
                     needed[1] * from_owner + needed[0] * from_key);
    };
    exchange(0, trees);
    meter.exchange(kCoinTossBytes, kCoinTossBytes);
    exchange(word, 0);
    exchange(0, sizeof(Commitment));
    exchange(word, 0);
    exchange(0, word + static_cast<i64>(sizeof(crypto::Block)));
    for (int owner : {0, 1}) voles.stock[owner] += needed[owner] * kMadeVoles;
  }
  for (int owner : {0, 1}) voles.stock[owner] -= n[owner];
}

#define PRIVML_INSTANTIATE(R)                              \
  template class SilentVole<R>;                            \
  template void cost_silent_vole_setup<R>(ot::CostMeter&); \
  template void cost_silent_vole<R>(ot::CostMeter&, SilentVoleMeter&, std::array<i64, 2>);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
