// SPDX-License-Identifier: Apache-2.0
// Products of three shared bits on planes, in one exchange after masks that need no input.
//
// Functionality  out ^= first & middle; out = (accumulate ? out : 0) ^ (first & second & last) for
//                each last factor; XOR-shared planes of n instances, 0/1 per byte.
// Method         first, second, middle and last are opened under random masks a, b, u and w, of
//                which ab, au, aw, bw and abw are shared: ab, au, aw are triples with a common
//                factor; b times w and aw is a product of the flight before.
// Leakage        none beyond lengths. Assumption: correlated OT, correlation-robust hash.
// Source         Beaver's triples (Crypto 1991) for products of three.
// Cost           masks: two triples and 2 (1 + 2 last) bits, one exchange; the product: 2 (2 +
//                middle + last) bits, one exchange.
#pragma once

#include <vector>

#include "twopc/select/bit_products.h"

namespace privml::twopc {

// How many factors a chain has.
struct ChainShape {
  bool middle = false;
  int last = 1;  // up to 3
};

// Masks of chains. `planes`, for chain k: a, b, ab, then u and au if there is a middle factor, then
// w, aw, bw, abw for each last factor.
struct ChainMasks {
  i64 n = 0;
  std::vector<ChainShape> shapes;
  std::vector<AlignedVector<u8>> planes;
  PendingProducts products;
};

// Nothing is written or read if there are no chains.
void write_chain_masks(ot::Party& party, std::vector<ChainShape> shapes, i64 n, ChainMasks& masks);
void read_chain_masks(ot::Party& party, ChainMasks& masks);
i64 chain_masks_bytes(std::span<const ChainShape> shapes, i64 n);
void cost_draw_chain_masks(ot::CostMeter& meter, std::span<const ChainShape> shapes, i64 n);

// An output may be the plane of a factor of the same chain.
struct PlaneChain {
  const u8* first = nullptr;
  const u8* second = nullptr;
  const u8* middle = nullptr;  // null: none
  u8* middle_out = nullptr;
  std::vector<Factor> last;
};

struct PendingChains {
  size_t begin = 0;  // place of the first chain's masks
  std::vector<PlaneChain> chains;
  AlignedVector<u8> opened;  // masked planes: first, second, middle, last, of each chain
};

// `chains` have the shapes of the masks from `begin` on.
void write_chains(ot::Party& party, const ChainMasks& masks, size_t begin,
                  std::vector<PlaneChain> chains, PendingChains& pending);
void read_chains(ot::Party& party, const ChainMasks& masks, PendingChains& pending);
i64 chains_bytes(std::span<const ChainShape> shapes, i64 n);

}  // namespace privml::twopc
