// SPDX-License-Identifier: Apache-2.0
#include "twopc/select/multiplex.h"

#include "base/error.h"
#include "twopc/select/bit_products.h"
#include "twopc/select/random_selection.h"
#include "twopc/session/chunk.h"

namespace privml::twopc {
namespace {

void cost_chunk(ot::CostMeter& meter, i64 n, i64 length, int width) {
  cost_draw_random_selection(meter, n);
  cost_flight(meter, random_selection_flight(n, length, width));
  meter.exchange(packed_bytes(n, 1), packed_bytes(n, 1));
}

void check(i64 length, int width) {
  expect(width >= 1 && width <= 64, "multiplex: width must be in 1..64");
  expect(length >= 1, "multiplex: a vector holds at least one element");
}

i64 bits_per_chunk(i64 length) { return std::max<i64>(1, kChunk / length); }

}  // namespace

void multiplex(ot::Party& party, std::span<const u8> bits, std::span<const u64> values, int width,
               std::span<u64> out) {
  multiplex_vectors(party, bits, values, 1, width, out);
}

void cost_multiplex(ot::CostMeter& meter, i64 n, int width) {
  cost_multiplex_vectors(meter, n, 1, width);
}

void multiplex_vectors(ot::Party& party, std::span<const u8> bits, std::span<const u64> values,
                       i64 length, int width, std::span<u64> out) {
  check(length, width);
  expect(std::ssize(values) == std::ssize(bits) * length,
         "multiplex: values must hold `length` elements for each bit");
  expect(out.size() == values.size(), "multiplex: out must be as long as values");
  in_chunks(
      party, std::ssize(bits),
      [&](ot::CostMeter& meter, i64 n) { cost_chunk(meter, n, length, width); },
      [&](i64 begin, i64 n) {
        const std::span<const u64> chosen = values.subspan(begin * length, n * length);
        RandomSelection random;
        write_random_selection(party, chosen, length, width, random);
        read_random_selection(party, random);
        std::vector<u8> difference(n);
        write_difference(party, bits.subspan(begin, n), random.bits, difference);
        read_bits_xor(party, difference);
        select_values(random, chosen, difference, out.subspan(begin * length, n * length));
      },
      bits_per_chunk(length));
}

void cost_multiplex_vectors(ot::CostMeter& meter, i64 n, i64 length, int width) {
  check(length, width);
  cost_in_chunks(
      meter, n, [&](ot::CostMeter& m, i64 count) { cost_chunk(m, count, length, width); },
      bits_per_chunk(length));
}

}  // namespace privml::twopc
