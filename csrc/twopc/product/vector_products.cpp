// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/vector_products.h"

#include <algorithm>

#include "base/error.h"
#include "ot/derive.h"
#include "twopc/product/vector_tiles.h"
#include "twopc/session/lane_pack.h"

namespace privml::twopc {
namespace {

// Buffers of one call, sized for its largest tile.
template <class Word>
struct Work {
  std::vector<Word> words;          // unpacked messages
  std::vector<u8> bytes;            // packed messages
  WipedVector<crypto::Block> ends;  // q ^ delta
  AlignedVector<crypto::Block> pads[2];
  WipedVector<crypto::Block> q, t;  // correlations of the chunk, as sender and as receiver
  std::vector<u8> choices;
};

template <class Word>
i64 pad_blocks(i64 length) {
  return ceil_div(length * static_cast<i64>(sizeof(Word)), static_cast<i64>(sizeof(crypto::Block)));
}

template <class Word>
void fit(Work<Word>& work, std::span<const ProductTile> tiles) {
  i64 words = 0, bytes = 0, products = 0, blocks = 0;
  for (const ProductTile& tile : tiles) {
    words = std::max(words, tile.count * tile.slice->length);
    bytes = std::max(bytes, tile.bytes);
    products = std::max(products, tile.count);
    blocks = std::max(blocks, tile.count * pad_blocks<Word>(tile.slice->length));
  }
  work.words.resize(words);
  work.bytes.resize(bytes);
  work.ends.resize(products);
  for (auto& pads : work.pads) pads.resize(blocks);
}

template <class Word>
TileView<Word> view(const ProductTile& tile, const ProductFormat& format, std::vector<Word>& sums) {
  const ProductSlice& slice = *tile.slice;
  return {tile.first,
          tile.count,
          slice.inner,
          slice.length,
          pad_blocks<Word>(slice.length),
          tile.bit,
          format.choice_signed && tile.bit == format.choice_bits - 1,
          sums.data() + slice.out};
}

template <class Word>
void send(ot::Party& party, const ProductTile& tile, const ProductFormat& format,
          const std::vector<Word>& y, std::vector<Word>& sums, Work<Word>& work) {
  const crypto::Block* q = work.q.data() + tile.first_cot;
  const crypto::Block delta = party.sender.delta();
  for (i64 k = 0; k < tile.count; ++k) work.ends[k] = q[k] ^ delta;
  const i64 blocks = pad_blocks<Word>(tile.slice->length);
  party.hash.expand(q, tile.count, blocks, work.pads[0].data());
  party.hash.expand(work.ends.data(), tile.count, blocks, work.pads[1].data());
  send_tile(view(tile, format, sums), y.data() + tile.slice->correlation, work.pads[0].data(),
            work.pads[1].data(), work.words.data());
  lane_pack(work.words.data(), tile.count * tile.slice->length, format.ell - tile.bit,
            work.bytes.data());
  party.channel.write({work.bytes.data(), static_cast<size_t>(tile.bytes)});
}

template <class Word>
void receive(ot::Party& party, const ProductTile& tile, const ProductFormat& format,
             std::vector<Word>& sums, Work<Word>& work) {
  const i64 blocks = pad_blocks<Word>(tile.slice->length);
  party.hash.expand(work.t.data() + tile.first_cot, tile.count, blocks, work.pads[0].data());
  party.channel.read({work.bytes.data(), static_cast<size_t>(tile.bytes)});
  lane_unpack(work.bytes.data(), tile.count * tile.slice->length, format.ell - tile.bit,
              work.words.data());
  receive_tile(view(tile, format, sums), work.choices.data() + tile.first_cot, work.pads[0].data(),
               work.words.data());
}

// The choice bits of a chunk in the order of its tiles.
void choice_bits(std::span<const ProductTile> tiles, std::span<const u64> x,
                 std::vector<u8>& choices) {
  for (const ProductTile& tile : tiles) {
    const u64* values = x.data() + tile.slice->choice + tile.first;
    u8* bits = choices.data() + tile.first_cot;
    for (i64 k = 0; k < tile.count; ++k) bits[k] = static_cast<u8>((values[k] >> tile.bit) & 1);
  }
}

void call(const std::function<void()>& function) {
  if (function) function();
}

// y: the words of `correlations`, set in the first chunk.
template <class Word>
struct Operands {
  std::span<const u64> x, correlations;
  std::vector<Word> y;
};

template <class Word>
void run_chunk(ot::Party& party, std::span<const ProductSlice> chunk, const ProductFormat& format,
               Operands<Word>& operands, std::vector<Word>& sums, Work<Word>& work,
               const Companion& companion) {
  const std::vector<ProductTile> tiles = product_tiles(chunk, format);
  const i64 cots = chunk_cots(chunk, format);
  const std::span<const u64> x = operands.x;
  fit(work, tiles);
  ot::reserve(party, operands.correlations.empty() ? 0 : cots, x.empty() ? 0 : cots);
  call(companion.write_first);
  if (!x.empty()) {
    work.choices.resize(cots);
    work.t.resize(cots);
    choice_bits(tiles, x, work.choices);
    ot::choose_receive(party, work.choices, work.t.data());
  }
  call(companion.read_first);
  std::vector<Word>& y = operands.y;
  if (y.empty()) y.assign(operands.correlations.begin(), operands.correlations.end());
  if (!y.empty()) {
    work.q.resize(cots);
    ot::choose_send(party, work.q.data(), cots);
  }
  const bool both = !x.empty() && !y.empty();
  for (size_t first = 0; first < tiles.size();) {
    const size_t last = both ? turn_end(tiles, first, party.chunk_factor) : tiles.size();
    for (size_t i = first; i < last && !y.empty(); ++i)
      send(party, tiles[i], format, y, sums, work);
    if (last == tiles.size()) call(companion.write_last);
    for (size_t i = first; i < last && !x.empty(); ++i)
      receive(party, tiles[i], format, sums, work);
    if (last == tiles.size()) call(companion.read_last);
    first = last;
  }
}

template <class Word>
void run(ot::Party& party, std::span<const ProductBlock> blocks, const ProductFormat& format,
         std::span<const u64> x, std::span<const u64> y, std::span<u64> out,
         const Companion& companion) {
  Operands<Word> operands{x, y, {}};
  std::vector<Word> sums(out.size());
  Work<Word> work;
  const auto chunks = product_chunks(blocks, format, party.chunk_factor);
  for (size_t i = 0; i < chunks.size(); ++i) {
    Companion part;
    if (i == 0) part.write_first = companion.write_first, part.read_first = companion.read_first;
    if (i + 1 == chunks.size())
      part.write_last = companion.write_last, part.read_last = companion.read_last;
    run_chunk<Word>(party, chunks[i], format, operands, sums, work, part);
  }
  for (size_t i = 0; i < out.size(); ++i) out[i] = sums[i] & low_mask(format.ell);
}

struct Sizes {
  i64 choices = 0, correlations = 0, out = 0;
};

Sizes sizes_of(std::span<const ProductBlock> blocks) {
  Sizes sizes;
  for (const ProductBlock& block : blocks) {
    sizes.choices += block.rows * block.inner;
    sizes.correlations += block.inner * block.length;
    sizes.out += block.rows * block.length;
  }
  return sizes;
}

}  // namespace

void vector_products(ot::Party& party, std::span<const ProductBlock> blocks,
                     const ProductFormat& format, std::span<const u64> choices,
                     std::span<const u64> correlations, std::span<u64> out,
                     const Companion& companion) {
  const Sizes sizes = sizes_of(blocks);
  expect(format.choice_bits >= 1 && format.choice_bits <= 64 && format.ell >= 1 && format.ell <= 64,
         "vector_products: widths must lie in 1..64");
  expect((choices.empty() || std::ssize(choices) == sizes.choices) &&
             (correlations.empty() || std::ssize(correlations) == sizes.correlations) &&
             std::ssize(out) == sizes.out,
         "vector_products: operand lengths must match the blocks");
  if (format.ell <= 32) {
    run<u32>(party, blocks, format, choices, correlations, out, companion);
  } else {
    run<u64>(party, blocks, format, choices, correlations, out, companion);
  }
}

void cost_vector_products(ot::CostMeter& meter, std::array<bool, 2> senders,
                          std::span<const ProductBlock> blocks, const ProductFormat& format,
                          CompanionFlights flights) {
  const auto chunks = product_chunks(blocks, format, meter.chunk_factor);
  for (size_t c = 0; c < chunks.size(); ++c) {
    const auto& chunk = chunks[c];
    const std::vector<ProductTile> tiles = product_tiles(chunk, format);
    const i64 cots = chunk_cots(chunk, format);
    meter.reserve(senders[0] ? cots : 0, senders[1] ? cots : 0);
    for (int sender : {0, 1})
      if (senders[sender]) meter.draw(sender, cots);
    const i64 choices = packed_bytes(cots, 1);
    cost_flight(meter, Flight{senders[1] ? choices : 0, senders[0] ? choices : 0} +
                           (c == 0 ? flights.first : Flight{}));
    const bool both = senders[0] && senders[1];
    for (size_t first = 0; first < tiles.size();) {
      const size_t last = both ? turn_end(tiles, first, meter.chunk_factor) : tiles.size();
      i64 bytes = 0;
      for (size_t i = first; i < last; ++i) bytes += tiles[i].bytes;
      const bool ends = c + 1 == chunks.size() && last == tiles.size();
      cost_flight(meter, Flight{senders[0] ? bytes : 0, senders[1] ? bytes : 0} +
                             (ends ? flights.last : Flight{}));
      first = last;
    }
  }
}

}  // namespace privml::twopc
