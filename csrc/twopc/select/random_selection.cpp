// SPDX-License-Identifier: Apache-2.0
#include "twopc/select/random_selection.h"

#include <algorithm>

#include "base/error.h"
#include "base/multiversion.h"
#include "ot/derive.h"
#include "twopc/select/bit_products.h"

namespace privml::twopc {
namespace {

// The choices that random correlations came with.
void own_choices(std::span<const crypto::Block> t, u8* choices) {
  for (std::size_t i = 0; i < t.size(); ++i) choices[i] = crypto::low_bit(t[i]);
}

// bit = difference ^ c: c itself or 1 - c, the one counted at party 0.
PRIVML_TARGET_CLONES
void convert_bits(int rank, const RandomBits& random, const u8* difference, u64* out) {
  const u64 mask = low_mask(random.width);
  const u64 first = rank == 0 ? 1 : 0;
  const u64* const ring = random.ring.data();
  for (i64 i = 0; i < random.n; ++i) {
    const u64 flipped = u64{0} - difference[i];
    out[i] = ((ring[i] ^ flipped) - flipped + (first & difference[i])) & mask;
  }
}

}  // namespace

// c_s + c_r - 2 c_s c_r for the sender's bit c_s and the choice c_r of a random correlation; the
// factor 2 leaves the product width - 1 bits.
void write_random_bits(ot::Party& party, i64 n, int width, RandomBits& random) {
  random.n = n;
  random.width = width;
  random.bits.assign(n, 0);
  if (width == 1) return;
  const Halves part = halves(party.rank, n);
  random.ring.resize(n);
  random.t.resize(part.receive_count);
  ot::draw_as_receiver(party, random.t.data(), part.receive_count);
  own_choices(random.t, random.bits.data() + part.receive_begin);
  const std::span<u8> sent = std::span(random.bits).subspan(part.send_begin, part.send_count);
  party.prg.fill_bits(sent);
  WipedVector<crypto::Block> q(part.send_count);
  ot::draw_as_sender(party, q.data(), part.send_count);
  AlignedVector<u64> correlation(part.send_count);
  for (i64 i = 0; i < part.send_count; ++i) correlation[i] = u64{0} - sent[i];
  const std::span<u64> kept = std::span(random.ring).subspan(part.send_begin, part.send_count);
  ot::additive_send(party, q.data(), correlation, 1, width - 1, kept);
}

void read_random_bits(ot::Party& party, RandomBits& random) {
  if (random.width == 1) return;
  const Halves part = halves(party.rank, random.n);
  ot::additive_receive(party, random.t.data(),
                       std::span(random.bits).subspan(part.receive_begin, part.receive_count), 1,
                       random.width - 1,
                       std::span(random.ring).subspan(part.receive_begin, part.receive_count));
  for (i64 i = 0; i < random.n; ++i) random.ring[i] = 2 * random.ring[i] + random.bits[i];
}

Flight random_bits_flight(i64 n, int width) {
  if (width == 1) return {};
  const i64 half = first_half(n);
  return {packed_bytes(half, width - 1), packed_bytes(n - half, width - 1)};
}

void cost_draw_random_bits(ot::CostMeter& meter, i64 n, int width) {
  if (width == 1) return;
  const i64 half = first_half(n);
  meter.draw(0, half);
  meter.draw(1, n - half);
}

void write_conversions(ot::Party& party, std::span<const PendingConversion> conversions,
                       std::vector<u8>& differences) {
  differences.clear();
  for (const PendingConversion& one : conversions) {
    if (one.random.width == 1) continue;
    for (i64 i = 0; i < one.random.n; ++i) differences.push_back(one.bits[i] ^ one.random.bits[i]);
  }
  write_bits(party, differences);
}

void read_conversions(ot::Party& party, std::span<const PendingConversion> conversions,
                      std::vector<u8>& differences) {
  read_bits_xor(party, differences);
  const u8* difference = differences.data();
  for (const PendingConversion& one : conversions) {
    if (one.random.width == 1) {
      std::ranges::copy(one.bits, one.out.begin());
    } else {
      convert_bits(party.rank, one.random, difference, one.out.data());
      difference += one.random.n;
    }
  }
}

void finish_conversions(ot::Party& party, std::span<const PendingConversion> conversions) {
  std::vector<u8> differences;
  write_conversions(party, conversions, differences);
  read_conversions(party, conversions, differences);
}

void cost_finish_conversions(ot::CostMeter& meter, i64 n, std::span<const int> widths) {
  const i64 opened = std::ranges::count_if(widths, [](int width) { return width > 1; });
  meter.exchange(packed_bytes(opened * n, 1), packed_bytes(opened * n, 1));
}

// c * value = (c0 + c1 - 2 c0 c1)(y0 + y1), where c_b is the choice of party b's own correlation:
// c_b y_b is local, the rest of y_b's product is a correlation y_b - 2 c_b y_b under the peer's
// choice.
void draw_random_selection(ot::Party& party, i64 n, RandomSelection& random) {
  random.bits.resize(n);
  random.t.resize(n);
  random.q.resize(n);
  ot::draw_as_receiver(party, random.t.data(), n);
  own_choices(random.t, random.bits.data());
  ot::draw_as_sender(party, random.q.data(), n);
}

void write_drawn_selection(ot::Party& party, std::span<const u64> values, int width,
                           RandomSelection& random) {
  const i64 n = std::ssize(random.bits), length = random.length;
  random.width = width;
  random.products.resize(values.size());
  AlignedVector<u64> correlation(values.size());
  for (i64 i = 0; i < n; ++i) {
    const u64 flipped = u64{0} - random.bits[i];
    for (i64 j = i * length; j < (i + 1) * length; ++j) {
      correlation[j] = (values[j] ^ flipped) - flipped;
    }
  }
  ot::additive_send(party, random.q.data(), correlation, length, width, random.products);
  for (i64 i = 0; i < n; ++i) {
    const u64 own = u64{0} - random.bits[i];
    for (i64 j = i * length; j < (i + 1) * length; ++j) random.products[j] += values[j] & own;
  }
}

void write_random_selection(ot::Party& party, std::span<const u64> values, i64 length, int width,
                            RandomSelection& random) {
  expect(length >= 1 && std::ssize(values) % length == 0,
         "multiplex: values must hold `length` elements for each bit");
  random.length = length;
  draw_random_selection(party, std::ssize(values) / length, random);
  write_drawn_selection(party, values, width, random);
}

void read_random_selection(ot::Party& party, RandomSelection& random) {
  AlignedVector<u64> received(random.products.size());
  ot::additive_receive(party, random.t.data(), random.bits, random.length, random.width, received);
  for (std::size_t j = 0; j < received.size(); ++j) random.products[j] += received[j];
}

void select_values(const RandomSelection& random, std::span<const u64> values,
                   std::span<const u8> difference, std::span<u64> out) {
  const u64 mask = low_mask(random.width);
  for (i64 i = 0; i < std::ssize(difference); ++i) {
    const u64 flipped = u64{0} - difference[i];
    for (i64 j = i * random.length; j < (i + 1) * random.length; ++j) {
      const u64 product = random.products[j];
      out[j] = ((product ^ flipped) - flipped + (values[j] & flipped)) & mask;
    }
  }
}

Flight random_selection_flight(i64 n, i64 length, int width) {
  return {packed_bytes(n * length, width), packed_bytes(n * length, width)};
}

void cost_draw_random_selection(ot::CostMeter& meter, i64 n) {
  meter.draw(0, n);
  meter.draw(1, n);
}

void write_difference(ot::Party& party, std::span<const u8> bits, std::span<const u8> random,
                      std::span<u8> difference) {
  for (std::size_t i = 0; i < bits.size(); ++i) difference[i] = bits[i] ^ random[i];
  write_bits(party, difference);
}

}  // namespace privml::twopc
