// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/modular_product.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/pack.h"
#include "twopc/product/modulus.h"
#include "twopc/product/private_product.h"
#include "twopc/select/bit_products.h"

namespace privml::twopc {
namespace {

constexpr i64 kPads = 512;  // at once

void send_products(ot::Party& party, std::span<const u8> bits, const Modulus& modulus,
                   std::span<u64> kept) {
  const i64 count = std::ssize(bits);
  const crypto::Block delta = party.sender.delta();
  WipedVector<crypto::Block> q(count), keys(2 * kPads), pads(2 * kPads);
  ot::draw_as_sender(party, q.data(), count);
  WipedVector<u64> messages(count);
  for (i64 begin = 0; begin < count; begin += kPads) {
    const i64 n = std::min(kPads, count - begin);
    for (i64 i = 0; i < n; ++i) {
      keys[i] = q[begin + i];
      keys[n + i] = q[begin + i] ^ delta;
    }
    party.hash.hash(keys.data(), pads.data(), 2 * n);
    for (i64 i = 0; i < n; ++i) {
      kept[begin + i] = modulus.of(pads[i].hi, pads[i].lo);
      const u64 other = modulus.of(pads[n + i].hi, pads[n + i].lo);
      messages[begin + i] =
          modulus.sum(modulus.difference(other, kept[begin + i]), bits[begin + i]);
    }
  }
  const int width = std::bit_width(modulus.value());
  std::vector<u8> wire(packed_bytes(count, width));
  pack(messages.data(), count, width, wire.data());
  party.channel.write(wire);
}

}  // namespace

void write_modular_product(ot::Party& party, std::span<const u8> bits, u64 prime,
                           ModularProduct& state) {
  const Modulus modulus(prime);
  const Halves part = halves(party.rank, std::ssize(bits));
  state.prime = prime;
  open_choices(party, bits, state.bits);
  state.kept.resize(part.send_count);
  send_products(party, bits.subspan(part.send_begin, part.send_count), modulus, state.kept);
}

// The sender has kept r of r + c x_s, of which the chooser has the negative.
void read_modular_product(ot::Party& party, ModularProduct& state, std::span<u64> out) {
  const Halves part = halves(party.rank, std::ssize(state.bits.own));
  expect(out.size() == state.bits.own.size(), "modular product: lengths differ");
  const Modulus modulus(state.prime);
  std::vector<u8> theirs(part.send_count, 0);
  read_bits_xor(party, theirs);
  const int width = std::bit_width(state.prime);
  std::vector<u8> wire(packed_bytes(part.receive_count, width));
  party.channel.read(wire);
  WipedVector<u64> messages(part.receive_count);
  unpack(wire.data(), part.receive_count, width, messages.data());
  WipedVector<crypto::Block> pads(part.receive_count);
  party.hash.hash(state.bits.t.data(), pads.data(), part.receive_count);
  u64 largest = 0;
  for (i64 i = 0; i < part.receive_count; ++i) {
    largest = std::max(largest, messages[i]);
    const u64 chosen = messages[i] & (u64{0} - state.bits.choices[i]);
    const u64 share = modulus.difference(chosen, modulus.of(pads[i].hi, pads[i].lo));
    out[part.receive_begin + i] = modulus.flipped(share, u64{0} - state.bits.differences[i]);
  }
  if (largest >= state.prime)
    throw ProtocolError("modular product: a message is not below its prime");
  for (i64 i = 0; i < part.send_count; ++i) {
    const u64 flip = u64{0} - theirs[i];
    out[part.send_begin + i] = modulus.sum(modulus.flipped(state.kept[i], flip),
                                           state.bits.own[part.send_begin + i] & flip);
  }
}

Flight modular_product_flight(i64 n, u64 prime) {
  return private_product_flight(n, std::bit_width(prime));
}

}  // namespace privml::twopc
