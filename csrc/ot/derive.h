// SPDX-License-Identifier: Apache-2.0
// Oblivious transfers derived from random correlated OT. Most of them work on *chosen*
// correlations: first the receiver's choices are imposed (one message of packed bits), then the
// sender answers with one message, so several transfers of different kinds can share one round
// trip.
//
// Assumption  hash() is correlation robust, for the offsets j * delta in GF(2^128), 0 < j < 2^m,
//             if a transfer combines several correlations (the subspace view of Roy, Crypto
//             2022, section 5).
// Leakage     none beyond lengths. Messages are bit-packed: `count` values of `width` bits take
//             packed_bytes(count, width) bytes, least significant bit first.
// Errors      InvalidArgument on widths, m or span sizes that do not fit.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::ot {

// --- Choices. Receiver's choices are bits (0/1 per byte). After it, t_i = q_i ^ choice_i * delta.
// Bytes: receiver -> sender packed_bytes(count, 1).
void choose_receive(Party& party, std::span<const u8> choices, crypto::Block* t);
void choose_send(Party& party, crypto::Block* q, i64 count);
void cost_choose(CostMeter& meter, int sender, i64 count);

// The same for digits of m bits, 1 <= m <= 8: correlation i * m + b gets bit b of digits[i], as
// one_of_n needs. The peer calls choose_send with m * digits.size().
void choose_digits_receive(Party& party, std::span<const u8> digits, int m, crypto::Block* t);

// --- Additive correlated OT over Z_{2^width}, 1 <= width <= 64: sender puts in x, gets r; receiver
// gets choice * x - r (mod 2^width). Correlation i carries x[i * length + j], 0 <= j < length.
// Bytes: sender -> receiver packed_bytes(count * length, width).
void additive_send(Party& party, const crypto::Block* q, std::span<const u64> x, i64 length,
                   int width, std::span<u64> r);
void additive_receive(Party& party, const crypto::Block* t, std::span<const u8> choices, i64 length,
                      int width, std::span<u64> out);
void cost_additive(CostMeter& meter, int sender, i64 count, i64 length, int width);

// --- 1-of-2^m OT of width-bit messages, 1 <= m <= 8, 1 <= width <= 64, from m chosen correlations
// each: correlation i * m + b belongs to bit b (b = 0 least significant) of instance i's choice.
// messages[i * 2^m + j]; out[i] = messages[i * 2^m + choice_i].
// Bytes: sender -> receiver packed_bytes(count << m, width).
void one_of_n_send(Party& party, const crypto::Block* q, int m, int width,
                   std::span<const u64> messages);
void one_of_n_receive(Party& party, const crypto::Block* t, std::span<const u8> choices, int m,
                      int width, std::span<u64> out);
void cost_one_of_n(CostMeter& meter, int sender, i64 count, int m, int width);

// The same transfer and the same bytes where all messages of an instance fit one word, that is
// width << m <= 32 (and width <= 8 for the receiver): message j of instance i is the low `width`
// bits of rows[i] >> (j * width). The sides may mix both forms.
void one_of_n_send_rows(Party& party, const crypto::Block* q, int m, int width,
                        std::span<const u32> rows);
void one_of_n_receive_rows(Party& party, const crypto::Block* t, std::span<const u8> choices, int m,
                           int width, std::span<u8> out);

// --- Random bit triples without communication (both directions' correlations, one each per
// triple): XOR shares of a random bit a, random `width`-bit strings b and c = a ? b : 0, 1 <= width
// <= 8. With width > 1 one operand serves `width` products. Draws `count` as sender and as
// receiver.
void bit_triples(Party& party, i64 count, int width, std::span<u8> a, std::span<u8> b,
                 std::span<u8> c);
void cost_bit_triples(CostMeter& meter, i64 count);

}  // namespace privml::ot
