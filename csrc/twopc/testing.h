// SPDX-License-Identifier: Apache-2.0
// For tests: two parties on threads over a memory channel, shares, and the comparison of a run with
// its cost function.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <random>
#include <vector>

#include "ot/parties_testing.h"
#include "twopc/chunk.h"

namespace privml::testing {

using Words = std::vector<u64>;
using Bits = std::vector<u8>;
template <class T>
using Both = std::array<T, 2>;  // party 0's and party 1's

struct OtKind {
  bool ideal = true;
  int k = 4;  // SoftSpoken's field degree, unused where ideal
  OtConfig config() const { return test_config(ideal ? "ideal" : "softspoken", k); }
};

// What the run of a protocol did, setup excluded.
struct Outcome {
  RcotCost rcot;
  SessionRecord record;
};

// Runs `body` as party 0 and as party 1; rethrows what either threw.
inline Outcome run_parties(const OtKind& ot, const std::function<void(Party&)>& body) {
  return {rcot_cost(ot.config()), run_session(ot.config(), body)};
}

// Bytes, depth and correlations of the run equal those of `cost` exactly.
inline void expect_cost_equals(const Outcome& outcome,
                               const std::function<void(CostMeter&)>& cost) {
  CostMeter meter(outcome.rcot);
  cost(meter);
  for (int rank : {0, 1}) {
    const Traffic& traffic = outcome.record.traffic[rank];
    const Ledger& ledger = outcome.record.ledger[rank];
    EXPECT_EQ(traffic.sent, meter.bytes[rank]) << "bytes sent by party " << rank;
    EXPECT_EQ(traffic.received, meter.bytes[1 - rank]) << "bytes received by party " << rank;
    EXPECT_EQ(traffic.depth, meter.depth[rank]) << "depth at party " << rank;
    EXPECT_EQ(ledger.cots_as_sender, meter.cots[rank]) << "correlations sent by party " << rank;
    EXPECT_EQ(ledger.cots_as_receiver, meter.cots[1 - rank]) << "received by party " << rank;
    EXPECT_EQ(ledger.phases[static_cast<int>(Phase::preprocess)].sent, meter.preprocess_bytes[rank])
        << "preprocessing bytes of party " << rank;
  }
}

// `count` random words of `bits` bits, the edges 0, 1, 2^(bits-1) - 1, 2^(bits-1) and all ones
// first.
inline Words random_words(i64 count, int bits, u64 seed = 1) {
  std::mt19937_64 random(seed);
  const u64 mask = low_mask(bits), half = u64{1} << (bits - 1);
  const std::array<u64, 5> edges{0, 1 & mask, half - 1, half, mask};
  Words words(count);
  for (i64 i = 0; i < count; ++i) {
    words[i] = i < std::ssize(edges) ? edges[i] : random() & mask;
  }
  return words;
}

inline Bits random_bits(i64 count, u64 seed = 1) {
  std::mt19937_64 random(seed);
  Bits bits(count);
  for (u8& bit : bits) bit = random() & 1;
  return bits;
}

// Random additive / XOR shares and back.
inline Both<Words> share(const Words& values, int bits, u64 seed = 1) {
  std::mt19937_64 random(seed ^ 0x5bd1e995);
  Both<Words> shares{Words(values.size()), Words(values.size())};
  for (std::size_t i = 0; i < values.size(); ++i) {
    shares[0][i] = random() & low_mask(bits);
    shares[1][i] = (values[i] - shares[0][i]) & low_mask(bits);
  }
  return shares;
}

inline Both<Bits> share_bits(const Bits& values, u64 seed = 1) {
  Both<Bits> shares{random_bits(std::ssize(values), seed ^ 0x5bd1e995), values};
  for (std::size_t i = 0; i < values.size(); ++i) shares[1][i] ^= shares[0][i];
  return shares;
}

inline Words reconstruct(const Both<Words>& shares, int bits) {
  Words values(shares[0].size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ((shares[0][i] | shares[1][i]) & ~low_mask(bits), 0U) << "bits above the width";
    values[i] = (shares[0][i] + shares[1][i]) & low_mask(bits);
  }
  return values;
}

inline Bits reconstruct_bits(const Both<Bits>& shares) {
  Bits values(shares[0].size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = shares[0][i] ^ shares[1][i];
  return values;
}

// All pairs (x0, x1) of `bits`-bit words, 2^(2 bits) of them.
inline Both<Words> all_share_pairs(int bits) {
  Both<Words> pairs;
  for (u64 x0 = 0; x0 <= low_mask(bits); ++x0) {
    for (u64 x1 = 0; x1 <= low_mask(bits); ++x1) {
      pairs[0].push_back(x0);
      pairs[1].push_back(x1);
    }
  }
  return pairs;
}

// Fills the bits above `bits` of every word with noise, which protocols must ignore.
inline void add_noise_above(Both<Words>& shares, int bits) {
  std::mt19937_64 random(99);
  for (Words& words : shares) {
    for (u64& word : words) word |= random() & ~low_mask(bits);
  }
}

// Ideal and SoftSpoken OT, and lengths up to one that spans two chunks: calls check(kind, n).
inline void for_each_size(const std::function<void(const OtKind&, i64)>& check) {
  for (const OtKind& kind : {OtKind{true, 0}, OtKind{false, 4}}) {
    for (const i64 n : {i64{1}, i64{7}, i64{1000}, kChunk + 3}) {
      SCOPED_TRACE(::testing::Message() << (kind.ideal ? "ideal" : "softspoken") << ", n = " << n);
      check(kind, n);
    }
  }
}

}  // namespace privml::testing
