// SPDX-License-Identifier: Apache-2.0
// Products of a bit known to party 0 with a bit known to party 1, as ring elements.
//
// Functionality  x0, x1 bits; additive shares of x0 x1 in Z_{2^width}, 1 <= width <= 64.
// Method         a random correlation with choice c carries the sender's bit x_s at once; the
//                chooser opens x_r ^ c meanwhile: x_s x_r is x_s c or x_s - x_s c.
// Leakage        none beyond length and width. Assumption: correlated OT, correlation-robust hash.
// Cost           one correlation and width + 1 bits per product; one exchange, which can be shared.
#pragma once

#include <vector>

#include "base/buffer.h"
#include "ot/cost.h"
#include "ot/party.h"
#include "twopc/session/flight.h"

namespace privml::twopc {

// What stands between the two halves of the exchange.
struct PrivateProduct {
  int width = 0;
  std::vector<u8> own;          // this party's bits
  std::vector<u8> differences;  // if this party chooses: x_r ^ c, as sent
  std::vector<u8> choices;
  AlignedVector<u64> kept;
  WipedVector<crypto::Block> t;
};

// The first step of products of bits: draws the correlations that this party chooses in, and opens
// its bits against them; sets own, differences, choices and t.
void open_choices(ot::Party& party, std::span<const u8> bits, PrivateProduct& state);

void write_private_product(ot::Party& party, std::span<const u8> bits, int width,
                           PrivateProduct& state);
void read_private_product(ot::Party& party, PrivateProduct& state, std::span<u64> out);
Flight private_product_flight(i64 n, int width);
void cost_draw_private_product(ot::CostMeter& meter, i64 n);

}  // namespace privml::twopc
