// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/most_significant_bit.h"

#include "base/error.h"
#include "twopc/compare/wrap.h"

namespace privml {

void most_significant_bit(Party& party, std::span<const u64> x, int bits, std::span<u8> msb) {
  expect(bits >= 1 && bits <= 64, "most_significant_bit: bits must be in 1..64");
  expect(msb.size() == x.size(), "most_significant_bit: msb must be as long as x");
  if (bits > 1) {
    wrap(party, x, bits - 1, msb);
  } else {
    std::fill(msb.begin(), msb.end(), u8{0});
  }
  for (std::size_t i = 0; i < x.size(); ++i) msb[i] ^= x[i] >> (bits - 1) & 1;
}

void cost_most_significant_bit(CostMeter& meter, i64 n, int bits) {
  if (bits > 1) cost_wrap(meter, n, bits - 1);
}

}  // namespace privml
