// SPDX-License-Identifier: Apache-2.0
// floor(x / 2^shift) of shared numbers in any ring, the carry of whose dropped bits comes from a
// comparison that goes on beside it: what selections of truncated numbers have in common.
//
// Functionality  x in Z_{2^bits}, 1 <= shift < bits <= 64; the quotient in Z_{2^ring}. In a ring of
//                more than bits - shift bits it is right for x below 2^(bits-1) alone.
// Method         truncation.h's truncate_reduce with the conversion's random bits first. The carry
// of
//                all of x, in a wider ring, follows from the top bits of its shares by
//                private_product.h.
// Leakage        none beyond length and widths. Assumption: correlated OT, correlation-robust hash.
// Cost           one conversion; a wider ring: a private product. The flight of both needs no input
//                of the comparison; the carries are opened in one exchange.
// Source         SiRNN (Rathee et al., S&P 2021), section IV, Algorithm 2; IV-E, "MSB-to-wrap".
#pragma once

#include <algorithm>
#include <vector>

#include "twopc/product/private_product.h"
#include "twopc/select/random_selection.h"

namespace privml::twopc {

struct QuotientShape {
  int bits = 0, shift = 0, ring = 0;
  int wider() const { return std::max(0, ring - (bits - shift)); }
};

struct Quotients {
  QuotientShape shape;
  RandomBits low;
  PrivateProduct tops;
  AlignedVector<u64> both;  // of the top bits of both shares, in a wider ring
  AlignedVector<u64> carries;
  std::vector<u8> opened;
};

// The first flight.
void write_quotients(ot::Party& party, std::span<const u64> x, Quotients& state);
void read_quotients(ot::Party& party, Quotients& state);
Flight quotients_flight(i64 n, const QuotientShape& shape);
void cost_draw_quotients(ot::CostMeter& meter, i64 n, const QuotientShape& shape);

// Opens the differences of the carries from the random bits.
void write_carries(ot::Party& party, std::span<const u8> carries, Quotients& state);
void read_carries(ot::Party& party, std::span<const u8> carries, Quotients& state);
Flight carries_flight(i64 n, const QuotientShape& shape);

AlignedVector<u64> quotients_of(std::span<const u64> x, const Quotients& state);

}  // namespace privml::twopc
