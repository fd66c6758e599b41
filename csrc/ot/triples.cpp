// SPDX-License-Identifier: Apache-2.0
// Gilboa's product of two private bits, in both directions, on random correlations: the receiver's
// choice bit is its a, the sender's b is the difference of the two pads.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "ot/derive.h"

namespace privml::ot {
namespace {

constexpr i64 kBlock = 512;

}  // namespace

void bit_triples(Party& party, i64 count, int width, std::span<u8> a, std::span<u8> b,
                 std::span<u8> c) {
  expect(1 <= width && width <= 8, "bit_triples: width must be in 1..8");
  expect(count >= 0 && std::ssize(a) == count && std::ssize(b) == count && std::ssize(c) == count,
         "bit_triples: a, b and c must have `count` elements");
  reserve(party, count, count);
  const crypto::Block delta = party.sender.delta();
  const u8 mask = static_cast<u8>(low_mask(width));
  std::array<crypto::Block, 3 * kBlock> pads;
  for (i64 begin = 0; begin < count; begin += kBlock) {
    const i64 n = std::min(kBlock, count - begin);
    crypto::Block* zero = pads.data();
    crypto::Block* one = zero + n;
    crypto::Block* chosen = one + n;
    draw_as_sender(party, zero, n);
    draw_as_receiver(party, chosen, n);
    for (i64 i = 0; i < n; ++i) {
      one[i] = zero[i] ^ delta;
      a[begin + i] = crypto::low_bit(chosen[i]);
    }
    party.hash.hash(pads.data(), pads.data(), 3 * n);
    for (i64 i = 0; i < n; ++i) {
      const u8 pad0 = static_cast<u8>(zero[i].lo), pad1 = static_cast<u8>(one[i].lo);
      const u8 difference = (pad0 ^ pad1) & mask;
      const u8 own = difference & static_cast<u8>(-a[begin + i]);
      b[begin + i] = difference;
      c[begin + i] = own ^ ((pad0 ^ static_cast<u8>(chosen[i].lo)) & mask);
    }
  }
}

void cost_bit_triples(CostMeter& meter, i64 count) {
  meter.reserve(count, count);
  meter.draw(0, count);
  meter.draw(1, count);
}

}  // namespace privml::ot
