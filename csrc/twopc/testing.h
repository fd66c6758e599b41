// SPDX-License-Identifier: Apache-2.0
// For tests: two parties on threads over a memory channel, shares, and the comparison of a run with
// its cost function.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::testing {

struct OtKind {
  bool ideal = true;
  int k = 4;  // SoftSpoken's field degree, unused where ideal
};

using Words = std::vector<u64>;
using Bits = std::vector<u8>;
template <class T>
using Both = std::array<T, 2>;  // party 0's and party 1's

// What the run of a protocol did, setup excluded.
struct Outcome {
  RcotCost rcot;
  Both<Traffic> traffic;
  Both<Ledger> ledger;
  Both<std::vector<u8>> wire;  // the bytes that party 0 / 1 sent
};

// Runs `body` as party 0 and as party 1; rethrows what either threw.
Outcome run_parties(const OtKind& ot, const std::function<void(Party&)>& body);

// Bytes, depth and correlations of the run equal those of `cost` exactly.
void expect_cost_equals(const Outcome& outcome, const std::function<void(CostMeter&)>& cost);

// Random additive / XOR shares and back.
Both<Words> share(const Words& values, int bits, u64 seed = 1);
Both<Bits> share_bits(const Bits& values, u64 seed = 1);
Words reconstruct(const Both<Words>& shares, int bits);
Bits reconstruct_bits(const Both<Bits>& shares);

// All pairs (x0, x1) of `bits`-bit words, 2^(2 bits) of them.
Both<Words> all_share_pairs(int bits);
// `count` random words of `bits` bits, the edge values 0, 1, 2^(bits-1) - 1, 2^(bits-1) and all
// ones among them.
Words random_words(i64 count, int bits, u64 seed = 1);
Bits random_bits(i64 count, u64 seed = 1);

}  // namespace privml::testing
