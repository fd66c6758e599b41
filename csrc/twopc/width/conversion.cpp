// SPDX-License-Identifier: Apache-2.0
#include "twopc/width/conversion.h"

#include <algorithm>
#include <array>

#include "base/buffer.h"
#include "base/error.h"
#include "ot/derive.h"
#include "twopc/select/random_selection.h"
#include "twopc/session/chunk.h"

namespace privml::twopc {
namespace {

void cost_chunk(ot::CostMeter& meter, i64 n, int width) {
  cost_draw_random_bits(meter, n, width);
  cost_flight(meter, random_bits_flight(n, width));
  cost_finish_conversions(meter, n, std::array{width});
}

// Words that one party sends for, and the correlations of their bits, bit plane by bit plane.
struct Half {
  std::span<const u64> z;
  std::span<u64> out;
  WipedVector<crypto::Block> cots;
  AlignedVector<u8> choices;
};

Half half_of(std::span<const u64> z, std::span<u64> out, i64 first, i64 count, int width) {
  Half half{z.subspan(first, count), out.subspan(first, count), {}, {}};
  half.cots.resize(count * (width - 1));
  std::copy(half.z.begin(), half.z.end(), half.out.begin());
  return half;
}

// a ^ b = a + b - 2ab: bit i contributes -2^(i + 1) * a_i * b_i, of which width - 1 - i bits count.
void subtract(Half& half, std::span<const u64> share, int bit) {
  for (size_t k = 0; k < share.size(); ++k) half.out[k] -= share[k] << (bit + 1);
}

void choose(ot::Party& party, Half& half, int width) {
  const i64 n = std::ssize(half.z);
  half.choices.resize(n * (width - 1));
  for (int i = 0; i + 1 < width; ++i)
    for (i64 k = 0; k < n; ++k) half.choices[i * n + k] = static_cast<u8>((half.z[k] >> i) & 1);
  ot::choose_receive(party, half.choices, half.cots.data());
}

void send(ot::Party& party, Half& half, int width) {
  const i64 n = std::ssize(half.z);
  AlignedVector<u64> bit(n), share(n);
  for (int i = 0; i + 1 < width; ++i) {
    for (i64 k = 0; k < n; ++k) bit[k] = (half.z[k] >> i) & 1;
    ot::additive_send(party, half.cots.data() + i * n, bit, 1, width - 1 - i, share);
    subtract(half, share, i);
  }
}

void receive(ot::Party& party, Half& half, int width) {
  const i64 n = std::ssize(half.z);
  AlignedVector<u64> share(n);
  for (int i = 0; i + 1 < width; ++i) {
    const std::span<const u8> plane{half.choices.data() + i * n, static_cast<size_t>(n)};
    ot::additive_receive(party, half.cots.data() + i * n, plane, 1, width - 1 - i, share);
    subtract(half, share, i);
  }
}

void convert_chunk(ot::Party& party, std::span<const u64> z, int width, std::span<u64> out) {
  const i64 n = std::ssize(z), first = (n + 1) / 2;
  Half halves[2] = {half_of(z, out, 0, first, width), half_of(z, out, first, n - first, width)};
  Half &sent = halves[party.rank], &chosen = halves[1 - party.rank];
  choose(party, chosen, width);
  ot::choose_send(party, sent.cots.data(), std::ssize(sent.cots));
  send(party, sent, width);
  receive(party, chosen, width);
  for (u64& value : out) value &= low_mask(width);
}

i64 stream_bytes(i64 n, int width) {
  i64 bytes = 0;
  for (int i = 0; i + 1 < width; ++i) bytes += packed_bytes(n, width - 1 - i);
  return bytes;
}

void cost_words_chunk(ot::CostMeter& meter, i64 n, int width) {
  const std::array<i64, 2> sent{(n + 1) / 2, n / 2};
  for (int r : {0, 1}) meter.draw(r, sent[r] * (width - 1));
  meter.exchange(packed_bytes(sent[1] * (width - 1), 1), packed_bytes(sent[0] * (width - 1), 1));
  meter.exchange(stream_bytes(sent[0], width), stream_bytes(sent[1], width));
}

}  // namespace

void bits_to_ring(ot::Party& party, std::span<const u8> bits, int width, std::span<u64> out) {
  expect(width >= 1 && width <= 64, "bits_to_ring: width must be in 1..64");
  expect(bits.size() == out.size(), "bits_to_ring: out must be as long as bits");
  if (width == 1) {
    for (std::size_t i = 0; i < bits.size(); ++i) out[i] = bits[i] & 1;
    return;
  }
  in_chunks(
      party, std::ssize(bits), [&](ot::CostMeter& meter, i64 n) { cost_chunk(meter, n, width); },
      [&](i64 begin, i64 n) {
        RandomBits random;
        write_random_bits(party, n, width, random);
        read_random_bits(party, random);
        const PendingConversion conversions[] = {
            {random, bits.subspan(begin, n), out.subspan(begin, n)}};
        finish_conversions(party, conversions);
      });
}

void cost_bits_to_ring(ot::CostMeter& meter, i64 n, int width) {
  if (width == 1) return;
  cost_in_chunks(meter, n, [&](ot::CostMeter& m, i64 count) { cost_chunk(m, count, width); });
}

void xor_to_additive(ot::Party& party, std::span<const u64> z, int width, std::span<u64> out) {
  expect(width >= 1 && width <= 64, "xor_to_additive: width must lie in 1..64");
  expect(z.size() == out.size(), "xor_to_additive: lengths differ");
  in_chunks(
      party, std::ssize(z), [&](ot::CostMeter& meter, i64 n) { cost_words_chunk(meter, n, width); },
      [&](i64 begin, i64 n) {
        convert_chunk(party, z.subspan(begin, n), width, out.subspan(begin, n));
      });
}

void cost_xor_to_additive(ot::CostMeter& meter, i64 count, int width) {
  cost_in_chunks(meter, count,
                 [&](ot::CostMeter& inner, i64 n) { cost_words_chunk(inner, n, width); });
}

}  // namespace privml::twopc
