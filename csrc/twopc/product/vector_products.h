// SPDX-License-Identifier: Apache-2.0
// The engine below matrix products and convolutions: one party's bits choose, the other party's
// rows of ring elements are the correlations, and the stream of messages is added up as it
// arrives.
//
// Functionality  for every block, receiver's X (rows x inner, choice_bits) and sender's Y (inner x
//                length): additive shares of X * Y mod 2^ell.
// Leakage        none beyond shapes and widths. Assumption: correlated OT, correlation-robust
//                hash.
// Cost           one correlation and one bit per choice bit, and per choice of bit i length * (ell
//                - i) bits; every tile of the stream (vector_tiles.h) is rounded up to a byte.
//                Depth 2 per chunk of choices, more if both parties send streams so long that
//                they take turns.
#pragma once

#include <vector>

#include "ot/cost.h"
#include "ot/party.h"
#include "twopc/product/companion.h"

namespace privml::twopc {

struct ProductBlock {
  i64 rows = 0;
  i64 inner = 0;
  i64 length = 0;
};

struct ProductFormat {
  int choice_bits = 64;  // bits at and above ell are skipped
  bool choice_signed = false;
  int ell = 64;
};

// `choices`: X of all blocks one after another, empty at a party that does not choose.
// `correlations`: Y of all blocks as ring elements of Z_{2^ell}, empty at a party that does not
// send. With both given at both parties the products run in both directions and their shares are
// added. out: rows x length of all blocks, overwritten. The companion's correlations and those of
// the first chunk of choices are reserved before; what it reads first may set the correlations.
void vector_products(ot::Party& party, std::span<const ProductBlock> blocks,
                     const ProductFormat& format, std::span<const u64> choices,
                     std::span<const u64> correlations, std::span<u64> out,
                     const Companion& companion = {});

// senders[r]: party r sends.
void cost_vector_products(ot::CostMeter& meter, std::array<bool, 2> senders,
                          std::span<const ProductBlock> blocks, const ProductFormat& format,
                          CompanionFlights flights = {});

}  // namespace privml::twopc
