// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "base/error.h"
#include "ot/derive.h"

namespace privml::ot {
namespace {

constexpr i64 kBlock =
    1024;  // correlations per piece of the message; stays in the first-level cache
using Packed = std::array<u8, kBlock / 8>;

// Bit i of the message is choices(i) ^ lsb(t[i]).
template <class Choices>
void pack_corrections(const crypto::Block* t, i64 count, Choices&& choices, Packed& out) {
  for (i64 begin = 0; begin < count; begin += 8) {
    const i64 n = std::min<i64>(8, count - begin);
    unsigned byte = 0;
    for (i64 i = 0; i < n; ++i) {
      byte |= ((choices(begin + i) ^ static_cast<unsigned>(t[begin + i].lo)) & 1u) << i;
    }
    out[begin / 8] = static_cast<u8>(byte);
  }
}

template <class Choices>
void receive_chosen(Party& party, i64 count, Choices&& choices, crypto::Block* t) {
  reserve(party, 0, count);
  Packed packed;
  for (i64 begin = 0; begin < count; begin += kBlock) {
    const i64 n = std::min(kBlock, count - begin);
    draw_as_receiver(party, t + begin, n);
    pack_corrections(t + begin, n, [&](i64 i) { return unsigned{choices(begin + i)}; }, packed);
    party.channel.write({packed.data(), static_cast<size_t>(packed_bytes(n, 1))});
  }
}

}  // namespace

void choose_receive(Party& party, std::span<const u8> choices, crypto::Block* t) {
  receive_chosen(party, std::ssize(choices), [&](i64 i) { return choices[i]; }, t);
}

void choose_digits_receive(Party& party, std::span<const u8> digits, int m, crypto::Block* t) {
  expect(1 <= m && m <= 8, "choose_digits_receive: m must be in 1..8");
  std::array<u8, kBlock * 8> bits;
  const i64 count = std::ssize(digits);
  reserve(party, 0, count * m);
  for (i64 begin = 0; begin < count; begin += kBlock) {
    const i64 n = std::min(kBlock, count - begin);
    for (i64 i = 0; i < n; ++i) {
      for (int b = 0; b < m; ++b) bits[i * m + b] = digits[begin + i] >> b & 1;
    }
    choose_receive(party, {bits.data(), static_cast<size_t>(n * m)}, t + begin * m);
  }
}

void choose_send(Party& party, crypto::Block* q, i64 count) {
  reserve(party, count, 0);
  const crypto::Block delta = party.sender.delta();
  Packed packed;
  for (i64 begin = 0; begin < count; begin += kBlock) {
    const i64 n = std::min(kBlock, count - begin);
    draw_as_sender(party, q + begin, n);
    party.channel.read({packed.data(), static_cast<size_t>(packed_bytes(n, 1))});
    for (i64 i = 0; i < n; ++i) q[begin + i] ^= crypto::select(packed[i / 8] >> (i % 8) & 1, delta);
  }
}

void cost_choose(CostMeter& meter, int sender, i64 count) {
  meter.draw(sender, count);
  meter.message(1 - sender, packed_bytes(count, 1));
}

}  // namespace privml::ot
