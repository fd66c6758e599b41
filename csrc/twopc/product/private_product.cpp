// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/private_product.h"

#include "ot/derive.h"
#include "twopc/select/bit_products.h"

namespace privml::twopc {

void open_choices(ot::Party& party, std::span<const u8> bits, PrivateProduct& state) {
  const Halves part = halves(party.rank, std::ssize(bits));
  state.own.assign(bits.begin(), bits.end());
  state.t.resize(part.receive_count);
  ot::draw_as_receiver(party, state.t.data(), part.receive_count);
  state.choices.resize(part.receive_count);
  state.differences.resize(part.receive_count);
  for (i64 i = 0; i < part.receive_count; ++i) {
    state.choices[i] = crypto::low_bit(state.t[i]);
    state.differences[i] = bits[part.receive_begin + i] ^ state.choices[i];
  }
  write_bits(party, state.differences);
}

void write_private_product(ot::Party& party, std::span<const u8> bits, int width,
                           PrivateProduct& state) {
  const Halves part = halves(party.rank, std::ssize(bits));
  state.width = width;
  open_choices(party, bits, state);
  WipedVector<crypto::Block> q(part.send_count);
  ot::draw_as_sender(party, q.data(), part.send_count);
  AlignedVector<u64> correlation(part.send_count);
  for (i64 i = 0; i < part.send_count; ++i) correlation[i] = bits[part.send_begin + i];
  state.kept.resize(part.send_count);
  ot::additive_send(party, q.data(), correlation, 1, width, state.kept);
}

void read_private_product(ot::Party& party, PrivateProduct& state, std::span<u64> out) {
  const Halves part = halves(party.rank, std::ssize(state.own));
  const u64 mask = low_mask(state.width);
  std::vector<u8> theirs(part.send_count, 0);
  read_bits_xor(party, theirs);
  const std::span<u64> received = out.subspan(part.receive_begin, part.receive_count);
  ot::additive_receive(party, state.t.data(), state.choices, 1, state.width, received);
  for (i64 i = 0; i < part.receive_count; ++i) {
    const u64 flipped = u64{0} - state.differences[i];
    received[i] = ((received[i] ^ flipped) - flipped) & mask;
  }
  for (i64 i = 0; i < part.send_count; ++i) {
    const u64 flipped = u64{0} - theirs[i];
    const u64 bit = state.own[part.send_begin + i] & flipped;
    out[part.send_begin + i] = ((state.kept[i] ^ flipped) - flipped + bit) & mask;
  }
}

Flight private_product_flight(i64 n, int width) {
  const i64 half = first_half(n), rest = n - half;
  return {packed_bytes(rest, 1) + packed_bytes(half, width),
          packed_bytes(half, 1) + packed_bytes(rest, width)};
}

void cost_draw_private_product(ot::CostMeter& meter, i64 n) {
  const i64 half = first_half(n);
  meter.draw(0, half);
  meter.draw(1, n - half);
}

}  // namespace privml::twopc
