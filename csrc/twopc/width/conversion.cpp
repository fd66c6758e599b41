// SPDX-License-Identifier: Apache-2.0
#include "twopc/width/conversion.h"

#include <array>

#include "base/error.h"
#include "twopc/select/random_selection.h"
#include "twopc/session/chunk.h"

namespace privml {
namespace {

void cost_chunk(CostMeter& meter, i64 n, int width) {
  cost_draw_random_bits(meter, n, width);
  cost_flight(meter, random_bits_flight(n, width));
  cost_finish_conversions(meter, n, std::array{width});
}

}  // namespace

void bits_to_ring(Party& party, std::span<const u8> bits, int width, std::span<u64> out) {
  expect(width >= 1 && width <= 64, "bits_to_ring: width must be in 1..64");
  expect(bits.size() == out.size(), "bits_to_ring: out must be as long as bits");
  if (width == 1) {
    for (std::size_t i = 0; i < bits.size(); ++i) out[i] = bits[i] & 1;
    return;
  }
  in_chunks(
      party, std::ssize(bits), [&](CostMeter& meter, i64 n) { cost_chunk(meter, n, width); },
      [&](i64 begin, i64 n) {
        RandomBits random;
        write_random_bits(party, n, width, random);
        read_random_bits(party, random);
        const PendingConversion conversions[] = {
            {random, bits.subspan(begin, n), out.subspan(begin, n)}};
        finish_conversions(party, conversions);
      });
}

void cost_bits_to_ring(CostMeter& meter, i64 n, int width) {
  if (width == 1) return;
  cost_in_chunks(meter, n, [&](CostMeter& m, i64 count) { cost_chunk(m, count, width); });
}

}  // namespace privml
