// SPDX-License-Identifier: Apache-2.0
// For tests: random values, shares of them and back.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "base/types.h"

namespace privml::twopc::testing {

using Words = std::vector<u64>;
using Bits = std::vector<u8>;
template <class T>
using Both = std::array<T, 2>;  // party 0's and party 1's

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

}  // namespace privml::twopc::testing
