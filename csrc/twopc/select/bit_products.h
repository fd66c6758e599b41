// SPDX-License-Identifier: Apache-2.0
// Products of shared bits on planes (one byte 0/1 per instance), many in one exchange, and the
// opening of masked bits. The two halves of each (write, read) let other messages share the flight.
#pragma once

#include <vector>

#include "base/buffer.h"
#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

// out[i] = (accumulate ? out[i] : 0) ^ (common[i] & plane[i]); an output may be the plane of an
// input of the same product.
struct Factor {
  const u8* plane = nullptr;
  u8* out = nullptr;
  bool accumulate = false;
};

// One operand times up to 8 factors.
struct PlaneProduct {
  const u8* common = nullptr;
  std::vector<Factor> factors;
};

// What stands between the two halves.
struct PendingProducts {
  i64 n = 0;
  std::vector<PlaneProduct> products;
  AlignedVector<u8> a, b, c;  // triples: one byte per product and instance
  AlignedVector<u8> opened;   // masked planes: common, then factors, of each product
};

// Draws the triples and writes the masked planes; then reads the peer's and sets the outputs.
void write_products(ot::Party& party, std::vector<PlaneProduct> products, i64 n,
                    PendingProducts& pending);
void read_products(ot::Party& party, PendingProducts& pending);

// Both halves.
void multiply_planes(ot::Party& party, std::vector<PlaneProduct> products, i64 n);

// `widths`: the number of factors of each product, in order.
i64 products_bytes(std::span<const int> widths, i64 n);
void cost_draw_products(ot::CostMeter& meter, std::span<const int> widths, i64 n);
void cost_multiply_planes(ot::CostMeter& meter, std::span<const int> widths, i64 n);

// Bits are opened to both parties: write own shares, then read the peer's and add them in place.
void write_bits(ot::Party& party, std::span<const u8> bits);
void read_bits_xor(ot::Party& party, std::span<u8> bits);

}  // namespace privml::twopc
