// SPDX-License-Identifier: Apache-2.0
// Public tables at shared places by the one-hot vector of a random place.
//
// Functionality  RandomOneHots: random places r in Z_{2^bits}, 1 <= bits <= 10, unknown to both
//                parties: additive shares of r, and XOR shares of the 2^bits bits [j = r].
//                look_up_at: with the index opened relative to r, XOR shares of any number of
//                table entries.
// Method         r consists of XOR-shared random bits. A product of two bits comes with the
//                correlations of a triple and makes the vector of two bits; the vector of more bits
//                is the outer product of two halves: one XOR-correlated transfer for each entry of
//                one half but the first, whose message is the other half but its first entry, in
//                both directions. What has entry 0 follows from the sum of a one-hot vector, 1.
//                The shares of r are made additive by a ^ b = a + b - 2ab. The entry at index =
//                opened + r is the sum of table[opened + j] * [j = r], which is local.
// Leakage        none beyond lengths and widths: what is opened is masked by r, which is used once.
//                Assumption: correlated OT, correlation-robust hash.
// Cost           2 (2^bits - bits - 1) bits for products, besides a choice bit for each transfer;
//                bits (bits + 1) / 2 - 1 for the additive place; 2 bits to open. It does not depend
//                on the width of the entries. Depth 2 per doubling of the number of bits beyond
//                two, before the index is known, and 1 after.
// Source         one-hot vectors as outer products: Ishai et al. (TCC 2013), "one-time truth
//                tables", in the form of Keller et al. (ACNS 2017), section 4.
#pragma once

#include <vector>

#include "base/buffer.h"
#include "ot/cost.h"
#include "ot/party.h"
#include "twopc/session/flight.h"

namespace privml::twopc {

// The vectors of a part of the places' bits: a leaf of one or two bits, or two others' product.
struct OneHotNode {
  int offset, bits;  // of the places' bits
  int level;         // of products until it is there; 0: a leaf
  int high, low;     // nodes
};

// One product's transfers in both directions.
struct OneHotTransfer {
  int node;   // or -1: the conversion of the places
  int level;  // of the flights that it takes part in
  AlignedVector<u8> choices;
  WipedVector<crypto::Block> chosen, sent;
  AlignedVector<u64> kept;
};

// Everything until the vectors are there. `rows`: row h of instance i at [(i << row_bits) + h],
// whose bit j says whether r = h * 2^(bits - row_bits) + j.
struct RandomOneHots {
  i64 n = 0;
  int bits = 0, row_bits = 0;
  std::vector<OneHotNode> nodes;  // the last is the whole
  std::vector<AlignedVector<u32>> vectors;
  AlignedVector<u64> place;
  AlignedVector<u64> words;  // XOR shares of r
  AlignedVector<u32> rows;
  int step = 0;
  std::vector<OneHotTransfer> transfers;
};

// All correlations are drawn first. The first flight is written by begin; each advance reads the
// peer's and writes the next one, and the last writes nothing. Other messages can share the
// flights.
void draw_one_hots(ot::Party& party, i64 n, int bits, RandomOneHots& state);
void begin_one_hots(ot::Party& party, RandomOneHots& state);
void advance_one_hots(ot::Party& party, RandomOneHots& state);
// Number of flights, and of calls of advance.
int one_hot_steps(int bits);
Flight one_hot_flight(i64 n, int bits, int step);
void cost_draw_one_hots(ot::CostMeter& meter, i64 n, int bits);
// Elements of a chunk: their vectors take at most 2 MB.
i64 one_hot_chunk(int bits);
// Bits on the wire of one element, opening included, if a correlation costs `correlation_bits`.
double one_hot_bits(int bits, double correlation_bits);

// A table of 2^bits entries of up to 64 bits and its results.
struct TableAt {
  std::span<const u64> table;
  std::span<u64> out;
};
// `index`: shares of the places. opened = index - r: written, then completed by the peer's share.
void write_places(ot::Party& party, const RandomOneHots& random, std::span<const u64> index,
                  AlignedVector<u64>& opened);
void read_places(ot::Party& party, const RandomOneHots& random, AlignedVector<u64>& opened);
void look_up_at(const RandomOneHots& random, std::span<const u64> opened,
                std::span<const TableAt> tables);
Flight open_places_flight(i64 n, int bits);

}  // namespace privml::twopc
