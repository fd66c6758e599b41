// SPDX-License-Identifier: Apache-2.0
// For tests: both parties of a session on two threads over a memory channel with the ideal supply,
// and shares dealt under its key.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "ot/testing/parties.h"
#include "spdz2k/preprocessing/ideal.h"
#include "spdz2k/shares/cost.h"
#include "spdz2k/shares/session.h"

namespace privml::spdz2k::testing {

template <class T>
using Both = std::array<T, 2>;
using Words = std::vector<u64>;
using Bits = std::vector<u8>;

inline constexpr crypto::Block kSeed{0x452821e638d01377, 0xbe5466cf34e90c6c};

// Shares under the ideal supply's key of any words, upper bits included.
template <class R, class W = typename R::Word>
Both<Shares<W>> share_full(const std::vector<W>& full, u64 seed = 1) {
  const W alpha = static_cast<W>(ideal_key<R>(kSeed, 0) + ideal_key<R>(kSeed, 1));
  const i64 n = std::ssize(full);
  Both<Shares<W>> out{Shares<W>(n), Shares<W>(n)};
  crypto::Prg random({seed, 0x9e3779b9});
  for (auto* words : {&out[0].value, &out[0].mac}) {
    random.fill_bytes({reinterpret_cast<u8*>(words->data()), n * sizeof(W)});
  }
  for (i64 i = 0; i < n; ++i) {
    out[1].value[i] = static_cast<W>(full[i] - out[0].value[i]);
    out[1].mac[i] = static_cast<W>(product(full[i], alpha) - out[0].mac[i]);
  }
  return out;
}

// Shares of values mod 2^k, or of bits, with random bits above.
template <class R, class W = typename R::Word>
Both<Shares<W>> share(const Words& values, u64 seed = 1) {
  const int bits = std::is_same_v<W, typename R::Word> ? R::k : 1;
  std::vector<W> full(values.size());
  crypto::Prg({seed, 0x7f4a7c15})
      .fill_bytes({reinterpret_cast<u8*>(full.data()), full.size() * sizeof(W)});
  for (std::size_t i = 0; i < full.size(); ++i) {
    full[i] = static_cast<W>(full[i] & ~low_bits(full[i], bits)) |
              low_bits(static_cast<W>(values[i]), bits);
  }
  return share_full<R, W>(full, seed);
}

template <class R>
Both<BitShares<R>> share_bits(const Words& values, u64 seed = 1) {
  return share<R, typename R::BitWord>(values, seed);
}

// The lowest `bits` bits of the shared values; the MAC relation must hold mod 2^mac_bits.
template <class R, class W>
Words reconstruct(const Both<Shares<W>>& shares, int bits, int mac_bits = kWordBits<W>) {
  const W alpha = static_cast<W>(ideal_key<R>(kSeed, 0) + ideal_key<R>(kSeed, 1));
  Words values(shares[0].size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const W full = static_cast<W>(shares[0].value[i] + shares[1].value[i]);
    const W mac = static_cast<W>(shares[0].mac[i] + shares[1].mac[i]);
    EXPECT_TRUE(low_bits(static_cast<W>(product(full, alpha) - mac), mac_bits) == 0)
        << "MAC of value " << i;
    values[i] = static_cast<u64>(low_bits(full, bits));
  }
  return values;
}

// `count` random words of `bits` bits, the edges first; for k = 8 every value if that is more.
inline Words random_words(i64 count, int bits, u64 seed = 1) {
  std::mt19937_64 random(seed);
  const u64 mask = low_mask(bits), half = u64{1} << (bits - 1);
  const std::array<u64, 6> edges{0, 1 & mask, half - 1, half, (half + 1) & mask, mask};
  Words words(count);
  for (i64 i = 0; i < count; ++i) {
    words[i] = i < std::ssize(edges) ? edges[i] : random() & mask;
  }
  return words;
}

inline Words all_words(int bits) {
  Words words(u64{1} << bits);
  for (u64 i = 0; i < words.size(); ++i) words[i] = i;
  return words;
}

// What a run of a protocol did, the session's start excluded.
struct Outcome {
  Both<net::Traffic> traffic;
  Both<Demand> drawn;
  Both<i64> checks{};
  Both<std::string> sent_hash;  // SHA-256 of everything sent, the start included
};

// Runs `body` as party 0 and as party 1; rethrows what either threw.
template <class R>
Outcome run_parties(const std::function<void(Session<R>&)>& body) {
  auto [first, second] = net::make_memory_channels();
  Both<std::unique_ptr<net::RecordedChannel>> channels{
      std::make_unique<net::RecordedChannel>(std::move(first)),
      std::make_unique<net::RecordedChannel>(std::move(second))};
  Outcome outcome;
  ot::testing::run_pair(
      [&](int rank) {
        net::RecordedChannel& channel = *channels[rank];
        crypto::Prg prg({static_cast<u64>(rank), 0x13198a2e});
        const auto supply = make_ideal_supply<R>(kSeed, rank);
        Session<R> session(rank, channel, prg, ideal_key<R>(kSeed, rank));
        session.set_supply(*supply);
        const net::Traffic before = channel.traffic();
        body(session);
        channel.flush();
        const net::Traffic after = channel.traffic();
        outcome.traffic[rank] = {after.sent - before.sent, after.received - before.received,
                                 after.depth - before.depth};
        outcome.drawn[rank] = supply->drawn();
        outcome.checks[rank] = session.checks;
        outcome.sent_hash[rank] = channel.sent_hash();
      },
      [&] {
        for (auto& channel : channels) channel->close();
      });
  return outcome;
}

// Bytes, depth, draws and checks equal those of the meter exactly.
inline void expect_cost_equals(const Outcome& outcome, const CostMeter& meter) {
  for (int rank : {0, 1}) {
    SCOPED_TRACE(::testing::Message() << "party " << rank);
    EXPECT_EQ(outcome.traffic[rank].sent, meter.bytes[rank]);
    EXPECT_EQ(outcome.traffic[rank].received, meter.bytes[1 - rank]);
    EXPECT_EQ(outcome.traffic[rank].depth, meter.depth[rank]);
    EXPECT_EQ(outcome.checks[rank], meter.checks);
    EXPECT_TRUE(outcome.drawn[rank] == meter.demand);
  }
}

// The first four bytes each of the SHA-256 of what party 0 and party 1 sent, in hexadecimal.
inline std::string trace(const Outcome& outcome) {
  return outcome.sent_hash[0].substr(0, 8) + outcome.sent_hash[1].substr(0, 8);
}

}  // namespace privml::spdz2k::testing
