// SPDX-License-Identifier: Apache-2.0
// Products of a bit known to party 0 with a bit known to party 1, as shares modulo a prime.
//
// Functionality  x0, x1 bits; additive shares of x0 x1 modulo p < 2^48, each below p.
// Method         private_product.h with messages modulo p; pads are numbers of 128 bits modulo p,
//                within 2^-80 of uniform.
// Leakage        none beyond length and the prime. Assumption: correlated OT, correlation-robust
//                hash.
// Cost           one correlation, and a bit and bitlength(p) bits a product; one exchange, which
//                other messages can share.
// Source         private_product.h.
#pragma once

#include <vector>

#include "base/buffer.h"
#include "ot/cost.h"
#include "ot/party.h"
#include "twopc/product/private_product.h"

namespace privml::twopc {

// What stands between the two halves of the exchange.
struct ModularProduct {
  u64 prime = 0;
  PrivateProduct bits;  // without width and kept
  WipedVector<u64> kept;
};

void write_modular_product(ot::Party& party, std::span<const u8> bits, u64 prime,
                           ModularProduct& state);
void read_modular_product(ot::Party& party, ModularProduct& state, std::span<u64> out);
// It draws what private_product.h does.
Flight modular_product_flight(i64 n, u64 prime);

}  // namespace privml::twopc
