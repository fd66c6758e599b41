// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/vector_tiles.h"

#include <algorithm>
#include <cstring>

#include "base/multiversion.h"

namespace privml::twopc {
namespace {

constexpr i64 kChunkCots = i64{1} << 19;
constexpr i64 kTileWords = i64{1} << 13;
constexpr i64 kTurnBytes = i64{1} << 20;

template <class Word>
[[gnu::always_inline]] inline Word word_of(const crypto::Block* blocks, i64 j) {
  Word word;
  std::memcpy(&word, reinterpret_cast<const u8*>(blocks) + j * sizeof(Word), sizeof(Word));
  return word;
}

template <class Word, bool negative>
[[gnu::always_inline]] inline void add_shifted(Word* accumulator, Word share, int shift) {
  *accumulator += negative ? Word{0} - (share << shift) : share << shift;
}

template <class Word, bool negative>
[[gnu::always_inline]] inline void send_rows(const TileView<Word>& tile, const Word* __restrict y,
                                             const crypto::Block* pad0, const crypto::Block* pad1,
                                             Word* __restrict message) {
  i64 row = tile.first / tile.inner, b = tile.first % tile.inner;
  for (i64 k = 0; k < tile.count; ++k) {
    const Word* __restrict values = y + b * tile.length;
    Word* __restrict sums = tile.accumulator + row * tile.length;
    for (i64 j = 0; j < tile.length; ++j) {
      const Word share = word_of<Word>(pad0, j);
      message[j] = values[j] - share + word_of<Word>(pad1, j);
      add_shifted<Word, negative>(sums + j, share, tile.shift);
    }
    message += tile.length;
    pad0 += tile.pad_blocks;
    pad1 += tile.pad_blocks;
    if (++b == tile.inner) b = 0, ++row;
  }
}

template <class Word, bool negative>
[[gnu::always_inline]] inline void receive_rows(const TileView<Word>& tile, const u8* choices,
                                                const crypto::Block* pad,
                                                const Word* __restrict message) {
  i64 row = tile.first / tile.inner, b = tile.first % tile.inner;
  for (i64 k = 0; k < tile.count; ++k) {
    const Word mask = Word{0} - static_cast<Word>(choices[k]);
    Word* __restrict sums = tile.accumulator + row * tile.length;
    for (i64 j = 0; j < tile.length; ++j)
      add_shifted<Word, negative>(sums + j, (message[j] & mask) - word_of<Word>(pad, j),
                                  tile.shift);
    message += tile.length;
    pad += tile.pad_blocks;
    if (++b == tile.inner) b = 0, ++row;
  }
}

template <class Word>
[[gnu::always_inline]] inline void send_any(const TileView<Word>& tile, const Word* y,
                                            const crypto::Block* pad0, const crypto::Block* pad1,
                                            Word* message) {
  if (tile.negative) {
    send_rows<Word, true>(tile, y, pad0, pad1, message);
  } else {
    send_rows<Word, false>(tile, y, pad0, pad1, message);
  }
}

template <class Word>
[[gnu::always_inline]] inline void receive_any(const TileView<Word>& tile, const u8* choices,
                                               const crypto::Block* pad, const Word* message) {
  if (tile.negative) {
    receive_rows<Word, true>(tile, choices, pad, message);
  } else {
    receive_rows<Word, false>(tile, choices, pad, message);
  }
}

}  // namespace

int used_choice_bits(const ProductFormat& format) {
  return std::min(format.choice_bits, format.ell);
}

std::vector<std::vector<ProductSlice>> product_chunks(std::span<const ProductBlock> blocks,
                                                      const ProductFormat& format,
                                                      i64 chunk_factor) {
  const int bits = used_choice_bits(format);
  const i64 most = kChunkCots * chunk_factor;
  // A row with more choices than a chunk holds is cut into pieces.
  const i64 piece = std::max<i64>(most / bits, 1);
  std::vector<std::vector<ProductSlice>> chunks;
  i64 choice = 0, correlation = 0, out = 0, open = 0;
  for (const ProductBlock& block : blocks) {
    const bool cut = block.inner > piece;
    const i64 parts = cut ? ceil_div(block.inner, piece) : 1;
    for (i64 row = 0; row < block.rows && block.inner > 0 && block.length > 0;) {
      i64 rows = 1;
      for (i64 part = 0; part < parts; ++part) {
        const i64 first = part * piece;
        const i64 inner = cut ? std::min(piece, block.inner - first) : block.inner;
        const i64 row_cots = inner * bits;
        if (chunks.empty() || open + row_cots > most) {
          chunks.emplace_back();
          open = 0;
        }
        if (!cut) rows = std::min(block.rows - row, (most - open) / row_cots);
        chunks.back().push_back({rows, inner, block.length, choice + row * block.inner + first,
                                 correlation + first * block.length, out + row * block.length});
        open += rows * row_cots;
      }
      row += rows;
    }
    choice += block.rows * block.inner;
    correlation += block.inner * block.length;
    out += block.rows * block.length;
  }
  return chunks;
}

i64 chunk_cots(std::span<const ProductSlice> chunk, const ProductFormat& format) {
  i64 cots = 0;
  for (const ProductSlice& slice : chunk)
    cots += slice.rows * slice.inner * used_choice_bits(format);
  return cots;
}

std::vector<ProductTile> product_tiles(std::span<const ProductSlice> chunk,
                                       const ProductFormat& format) {
  std::vector<ProductTile> tiles;
  i64 cot = 0;
  for (const ProductSlice& slice : chunk) {
    const i64 products = slice.rows * slice.inner;
    const i64 step = std::max<i64>(kTileWords / slice.length, 1);
    for (int bit = 0; bit < used_choice_bits(format); ++bit) {
      for (i64 first = 0; first < products; first += step) {
        const i64 count = std::min(step, products - first);
        const i64 bytes = packed_bytes(count * slice.length, format.ell - bit);
        tiles.push_back({&slice, first, count, cot, bit, bytes});
        cot += count;
      }
    }
  }
  return tiles;
}

size_t turn_end(std::span<const ProductTile> tiles, size_t first, i64 chunk_factor) {
  i64 bytes = 0;
  while (first < tiles.size() && bytes < kTurnBytes * chunk_factor) bytes += tiles[first++].bytes;
  return first;
}

PRIVML_TARGET_CLONES
void send_tile(const TileView<u32>& tile, const u32* y, const crypto::Block* pad0,
               const crypto::Block* pad1, u32* message) {
  send_any(tile, y, pad0, pad1, message);
}
PRIVML_TARGET_CLONES
void send_tile(const TileView<u64>& tile, const u64* y, const crypto::Block* pad0,
               const crypto::Block* pad1, u64* message) {
  send_any(tile, y, pad0, pad1, message);
}
PRIVML_TARGET_CLONES
void receive_tile(const TileView<u32>& tile, const u8* choices, const crypto::Block* pad,
                  const u32* message) {
  receive_any(tile, choices, pad, message);
}
PRIVML_TARGET_CLONES
void receive_tile(const TileView<u64>& tile, const u8* choices, const crypto::Block* pad,
                  const u64* message) {
  receive_any(tile, choices, pad, message);
}

}  // namespace privml::twopc
