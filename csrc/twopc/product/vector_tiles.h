// SPDX-License-Identifier: Apache-2.0
// The order in which vector_products() walks through its work, shared with its cost function, and
// the arithmetic of one tile.
#pragma once

#include <vector>

#include "twopc/product/vector_products.h"

namespace privml::twopc {

// Rows [first_row, first_row + rows) of a block; `choice`, `correlation`, `out` are its places in
// the operands.
struct ProductSlice {
  i64 rows, inner, length;
  i64 choice, correlation, out;
};

// Consecutive products k = row * inner + b of one slice for one choice bit; `first_cot` is the
// place of the first one's correlation in the chunk.
struct ProductTile {
  const ProductSlice* slice;
  i64 first, count;
  i64 first_cot;
  int bit;
  i64 bytes;
};

// Choice bits that count: those below ell.
int used_choice_bits(const ProductFormat& format);

// Chunks of slices whose correlations are chosen together.
std::vector<std::vector<ProductSlice>> product_chunks(std::span<const ProductBlock> blocks,
                                                      const ProductFormat& format,
                                                      i64 chunk_factor);
i64 chunk_cots(std::span<const ProductSlice> chunk, const ProductFormat& format);
std::vector<ProductTile> product_tiles(std::span<const ProductSlice> chunk,
                                       const ProductFormat& format);

// Both parties send: tiles [first, result) go out before any is read.
size_t turn_end(std::span<const ProductTile> tiles, size_t first, i64 chunk_factor);

// What a tile's arithmetic reads and writes. Pads hold pad_blocks blocks per product, words from
// the front.
template <class Word>
struct TileView {
  i64 first, count, inner, length, pad_blocks;
  int shift;
  bool negative;  // the sign bit of two's complement
  Word* accumulator;
};

// Sender: message = y - pad0 + pad1, share = pad0.
void send_tile(const TileView<u32>& tile, const u32* y, const crypto::Block* pad0,
               const crypto::Block* pad1, u32* message);
void send_tile(const TileView<u64>& tile, const u64* y, const crypto::Block* pad0,
               const crypto::Block* pad1, u64* message);
// Receiver: share = choice * message - pad.
void receive_tile(const TileView<u32>& tile, const u8* choices, const crypto::Block* pad,
                  const u32* message);
void receive_tile(const TileView<u64>& tile, const u8* choices, const crypto::Block* pad,
                  const u64* message);

}  // namespace privml::twopc
