// SPDX-License-Identifier: Apache-2.0
// Fixed keys of one party, digit by digit, as punctured seeds: for every digit of `width` bits the
// vector's side holds 2^width seeds and the key's side all of them but the one that the digit
// numbers. Pseudo-random streams from the seeds then give any number of products (vole.h).
//
// Functionality  from malicious correlated OTs, `width` per digit; GGM trees with the proof of
//                ggm.h, so that every seed the key's side holds is determined by the peer's
//                messages.
// Leakage        a dishonest vector's side may guess sets that contain digits; a wrong guess ends
//                the session. What it learns is bounded by the probability that the session
//                continues.
// Assumption     AES-128 as pseudo-random generator, ggm.h, hash() correlation robust.
// Cost           key's side: a bit per key bit; vector's side: 32 bytes per key bit and 64 per
//                digit.
#pragma once

#include <array>
#include <vector>

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::spdz2k {

struct TreeShape {
  int digits;
  int width;
  constexpr int bits() const { return digits * width; }
  constexpr int leaves() const { return 1 << width; }
};

// The streams of all seeds that a side holds. Both sides take the same pieces in the same order.
class SeedStreams {
 public:
  // Digit by digit, 2^width seeds each. On the key's side entry y of a digit is seed y ^ digit, and
  // entry 0 is unknown.
  SeedStreams(TreeShape shape, bool key_side, std::span<const crypto::Block> seeds);

  const TreeShape& shape() const { return shape_; }
  // The next `blocks` blocks of every stream of digit d, stream by stream; zeros for the unknown
  // one. advance() once all digits are read.
  void read(int digit, i64 blocks, crypto::Block* out) const;
  void advance(i64 blocks) { position_ += static_cast<u64>(blocks); }

 private:
  TreeShape shape_;
  bool key_side_;
  std::vector<crypto::Aes128> streams_;
  u64 position_ = 0;
};

// Both directions' streams of one kind of key at one party.
struct SeedPair {
  SeedStreams own_key;
  SeedStreams peer_key;
};

// `key`: this party's bits, 0 or 1 each, digit by digit from the lowest bit; the shapes' bits
// together. Returns one pair for each shape. Throws SecurityAbort if the peer's trees fail their
// proof.
std::vector<SeedPair> make_seed_trees(ot::Party& party, std::span<const TreeShape> shapes,
                                      std::span<const u8> key);
void cost_seed_trees(ot::CostMeter& meter, std::span<const TreeShape> shapes);

}  // namespace privml::spdz2k
