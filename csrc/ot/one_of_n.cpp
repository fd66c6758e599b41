// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/buffer.h"
#include "base/error.h"
#include "base/pack.h"
#include "ot/derive.h"
#include "ot/pads.h"

namespace privml::ot {
namespace {

constexpr i64 kWorkspaceBlocks = 2048;  // hash outputs of one piece of the message: 32 KiB

TransferShape checked_shape(int m, int width) {
  expect(1 <= m && m <= 8, "one_of_n: m must be in 1..8");
  expect(1 <= width && width <= 64, "one_of_n: width must be in 1..64");
  return {m, width};
}

// Instances per piece of the message: a multiple of eight, so that pieces are whole bytes.
i64 piece_size(TransferShape shape) {
  const i64 blocks = shape.combined() ? shape.messages() : shape.digit_keys() * shape.row_blocks();
  return std::max<i64>(8, kWorkspaceBlocks / blocks / 8 * 8);
}

template <class Word>
void store_words(const u64* rows, i64 n, u8* out) {
  for (i64 i = 0; i < n; ++i) {
    const Word word = static_cast<Word>(rows[i]);
    std::memcpy(out + i * sizeof(Word), &word, sizeof(Word));
  }
}

template <class Word>
void load_words(const u8* bytes, i64 n, u64* rows) {
  for (i64 i = 0; i < n; ++i) {
    Word word;
    std::memcpy(&word, bytes + i * sizeof(Word), sizeof(Word));
    rows[i] = word;
  }
}

void store_rows(const u64* rows, i64 n, int bits, u8* out) {
  if (bits == 8) return store_words<u8>(rows, n, out);
  if (bits == 16) return store_words<u16>(rows, n, out);
  if (bits == 32) return store_words<u32>(rows, n, out);
  if (bits == 64) return store_words<u64>(rows, n, out);
  pack(rows, n, bits, out);
}

void load_rows(const u8* bytes, i64 n, int bits, u64* rows) {
  if (bits == 8) return load_words<u8>(bytes, n, rows);
  if (bits == 16) return load_words<u16>(bytes, n, rows);
  if (bits == 32) return load_words<u32>(bytes, n, rows);
  if (bits == 64) return load_words<u64>(bytes, n, rows);
  unpack(bytes, n, bits, rows);
}

// Rows of at most 64 bits; row(i) gives instance i's messages in one word.
template <class Row>
void send_words(Party& party, const crypto::Block* q, TransferShape shape, i64 count, Row&& row) {
  const i64 piece = std::min(count, piece_size(shape));
  DigitPads pads(shape, party.sender.delta(), piece);
  AlignedVector<crypto::Block> rows(piece);
  AlignedVector<u64> words(piece);
  const int bits = static_cast<int>(shape.row_bits());
  const u64 row_mask = low_mask(bits);
  AlignedVector<u8> bytes(packed_bytes(piece, bits));
  for (i64 begin = 0; begin < count; begin += piece) {
    const i64 n = std::min(piece, count - begin);
    pads.send(party.hash, q + begin * shape.m, n, rows.data());
    for (i64 i = 0; i < n; ++i) words[i] = (rows[i].lo ^ row(begin + i)) & row_mask;
    store_rows(words.data(), n, bits, bytes.data());
    party.channel.write({bytes.data(), static_cast<size_t>(packed_bytes(n, bits))});
  }
}

template <class Out>
void receive_words(Party& party, const crypto::Block* t, TransferShape shape,
                   std::span<const u8> choices, std::span<Out> out) {
  const i64 count = std::ssize(choices);
  const i64 piece = std::min(count, piece_size(shape));
  DigitPads pads(shape, crypto::kZeroBlock, piece);
  AlignedVector<crypto::Block> rows(piece);
  AlignedVector<u64> words(piece);
  const int bits = static_cast<int>(shape.row_bits());
  const u64 mask = low_mask(shape.width);
  const int last = static_cast<int>(shape.messages() - 1);
  AlignedVector<u8> bytes(packed_bytes(piece, bits));
  for (i64 begin = 0; begin < count; begin += piece) {
    const i64 n = std::min(piece, count - begin);
    pads.receive(party.hash, t + begin * shape.m, n, rows.data());
    party.channel.read({bytes.data(), static_cast<size_t>(packed_bytes(n, bits))});
    load_rows(bytes.data(), n, bits, words.data());
    for (i64 i = 0; i < n; ++i) {
      const int shift = (choices[begin + i] & last) * shape.width;
      out[begin + i] = static_cast<Out>((words[i] ^ rows[i].lo) >> shift & mask);
    }
  }
}

// The entry that the choice names, read from all entries alike.
u64 scan_select(const u64* entries, i64 messages, u64 choice) {
  u64 chosen = 0;
  for (i64 j = 0; j < messages; ++j) {
    chosen |= entries[j] & (u64{0} - static_cast<u64>(static_cast<u64>(j) == choice));
  }
  return chosen;
}

void xor_rows(const crypto::Block* pads, TransferShape shape, i64 n, u8* bytes) {
  const i64 row_bytes = shape.row_bits() / 8;
  for (i64 i = 0; i < n; ++i) {
    const u8* pad = reinterpret_cast<const u8*>(pads + i * shape.row_blocks());
    for (i64 j = 0; j < row_bytes; ++j) bytes[i * row_bytes + j] ^= pad[j];
  }
}

void send_long(Party& party, const crypto::Block* q, TransferShape shape,
               std::span<const u64> messages) {
  const i64 per_row = shape.messages();
  const i64 count = std::ssize(messages) / per_row;
  const i64 piece = std::min(count, piece_size(shape));
  const bool combined = shape.combined();
  const crypto::Block delta = party.sender.delta();
  const WipedVector<crypto::Block> multiples = offset_multiples(delta, shape.m);
  DigitPads digit_pads(shape, delta, combined ? 0 : piece);
  AlignedVector<crypto::Block> pads(piece * (combined ? per_row : shape.row_blocks()));
  AlignedVector<u64> masked(combined ? piece * per_row : 0);
  AlignedVector<u8> bytes(packed_bytes(piece * per_row, shape.width));
  for (i64 begin = 0; begin < count; begin += piece) {
    const i64 n = std::min(piece, count - begin);
    const u64* in = messages.data() + begin * per_row;
    if (combined) {
      combined_pads_send(party.hash, q + begin * shape.m, n, shape.m, multiples.data(),
                         pads.data());
      for (i64 j = 0; j < n * per_row; ++j) masked[j] = in[j] ^ pads[j].lo;
      pack(masked.data(), n * per_row, shape.width, bytes.data());
    } else {
      digit_pads.send(party.hash, q + begin * shape.m, n, pads.data());
      pack(in, n * per_row, shape.width, bytes.data());
      xor_rows(pads.data(), shape, n, bytes.data());
    }
    party.channel.write(
        {bytes.data(), static_cast<size_t>(packed_bytes(n * per_row, shape.width))});
  }
}

void receive_long(Party& party, const crypto::Block* t, TransferShape shape,
                  std::span<const u8> choices, std::span<u64> out) {
  const i64 per_row = shape.messages();
  const i64 count = std::ssize(choices);
  const i64 piece = std::min(count, piece_size(shape));
  const bool combined = shape.combined();
  DigitPads digit_pads(shape, crypto::kZeroBlock, combined ? 0 : piece);
  AlignedVector<crypto::Block> pads(piece * (combined ? 1 : shape.row_blocks()));
  AlignedVector<u64> entries(piece * per_row);
  AlignedVector<u8> bytes(packed_bytes(piece * per_row, shape.width));
  const u64 mask = low_mask(shape.width);
  for (i64 begin = 0; begin < count; begin += piece) {
    const i64 n = std::min(piece, count - begin);
    const crypto::Block* in = t + begin * shape.m;
    if (combined) {
      combined_pads_receive(party.hash, in, n, shape.m, pads.data());
    } else {
      digit_pads.receive(party.hash, in, n, pads.data());
    }
    party.channel.read({bytes.data(), static_cast<size_t>(packed_bytes(n * per_row, shape.width))});
    if (!combined) xor_rows(pads.data(), shape, n, bytes.data());
    unpack(bytes.data(), n * per_row, shape.width, entries.data());
    for (i64 i = 0; i < n; ++i) {
      const u64 choice = choices[begin + i] & static_cast<u64>(per_row - 1);
      const u64 pad = combined ? pads[i].lo : 0;
      out[begin + i] = (scan_select(entries.data() + i * per_row, per_row, choice) ^ pad) & mask;
    }
  }
}

}  // namespace

void one_of_n_send(Party& party, const crypto::Block* q, int m, int width,
                   std::span<const u64> messages) {
  const TransferShape shape = checked_shape(m, width);
  const i64 per_row = shape.messages();
  expect(std::ssize(messages) % per_row == 0, "one_of_n_send: needs 2^m messages per instance");
  if (!shape.fits_word()) return send_long(party, q, shape, messages);
  const u64 mask = low_mask(width);
  send_words(party, q, shape, std::ssize(messages) / per_row, [&](i64 i) {
    u64 row = 0;
    for (i64 j = 0; j < per_row; ++j) row |= (messages[i * per_row + j] & mask) << (j * width);
    return row;
  });
}

void one_of_n_receive(Party& party, const crypto::Block* t, std::span<const u8> choices, int m,
                      int width, std::span<u64> out) {
  const TransferShape shape = checked_shape(m, width);
  expect(choices.size() == out.size(), "one_of_n_receive: needs one output per choice");
  if (!shape.fits_word()) return receive_long(party, t, shape, choices, out);
  receive_words(party, t, shape, choices, out);
}

void one_of_n_send_rows(Party& party, const crypto::Block* q, int m, int width,
                        std::span<const u32> rows) {
  const TransferShape shape = checked_shape(m, width);
  expect(shape.row_bits() <= 32, "one_of_n_send_rows: width << m must be at most 32");
  send_words(party, q, shape, std::ssize(rows), [&](i64 i) { return u64{rows[i]}; });
}

void one_of_n_receive_rows(Party& party, const crypto::Block* t, std::span<const u8> choices, int m,
                           int width, std::span<u8> out) {
  const TransferShape shape = checked_shape(m, width);
  expect(shape.row_bits() <= 32 && width <= 8,
         "one_of_n_receive_rows: width must be at most 8 and width << m at most 32");
  expect(choices.size() == out.size(), "one_of_n_receive_rows: needs one output per choice");
  receive_words(party, t, shape, choices, out);
}

void cost_one_of_n(CostMeter& meter, int sender, i64 count, int m, int width) {
  meter.message(sender, packed_bytes(count << m, width));
}

}  // namespace privml::ot
