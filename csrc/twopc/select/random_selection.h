// SPDX-License-Identifier: Apache-2.0
// Conversions and selections for random bits, prepared before the real bits are known. Each is one
// flight that needs no bit; when a bit is there, its difference from the random one is opened and
// the rest is local. conversion.h and multiplex.h state functionality, source and cost.
#pragma once

#include <vector>

#include "base/buffer.h"
#include "ot/cost.h"
#include "ot/party.h"
#include "twopc/session/flight.h"

namespace privml::twopc {

// A random shared bit c and additive shares of c in Z_{2^width}. Width 1 takes the bits as they
// are.
struct RandomBits {
  i64 n = 0;
  int width = 0;
  std::vector<u8> bits;
  AlignedVector<u64> ring;
  WipedVector<crypto::Block> t;
};

void write_random_bits(ot::Party& party, i64 n, int width, RandomBits& random);
void read_random_bits(ot::Party& party, RandomBits& random);
Flight random_bits_flight(i64 n, int width);
void cost_draw_random_bits(ot::CostMeter& meter, i64 n, int width);

// Shared bits whose conversion was prepared by `random`, of the same length.
struct PendingConversion {
  const RandomBits& random;
  std::span<const u8> bits;
  std::span<u64> out;
};
// Opens all differences in one exchange; out = additive shares of the bits. Or in two halves, with
// the same conversions.
void finish_conversions(ot::Party& party, std::span<const PendingConversion> conversions);
void write_conversions(ot::Party& party, std::span<const PendingConversion> conversions,
                       std::vector<u8>& differences);
void read_conversions(ot::Party& party, std::span<const PendingConversion> conversions,
                      std::vector<u8>& differences);
void cost_finish_conversions(ot::CostMeter& meter, i64 n, std::span<const int> widths);

// A random shared bit c and additive shares of c * value, `length` values under each bit.
struct RandomSelection {
  i64 length = 1;
  int width = 0;
  std::vector<u8> bits;
  AlignedVector<u64> products;
  WipedVector<crypto::Block> t, q;
};

// The random bits, which can be compared with others before there are values; then the flight.
void draw_random_selection(ot::Party& party, i64 n, RandomSelection& random);
void write_drawn_selection(ot::Party& party, std::span<const u64> values, int width,
                           RandomSelection& random);
// Both, `length` values under each bit.
void write_random_selection(ot::Party& party, std::span<const u64> values, i64 length, int width,
                            RandomSelection& random);
void read_random_selection(ot::Party& party, RandomSelection& random);
// difference: opened bit ^ c. out = bit ? value : 0.
void select_values(const RandomSelection& random, std::span<const u64> values,
                   std::span<const u8> difference, std::span<u64> out);
Flight random_selection_flight(i64 n, i64 length, int width);
void cost_draw_random_selection(ot::CostMeter& meter, i64 n);

// difference[i] = opened bits[i] ^ random[i]: written, then completed by the peer's share.
void write_difference(ot::Party& party, std::span<const u8> bits, std::span<const u8> random,
                      std::span<u8> difference);

}  // namespace privml::twopc
