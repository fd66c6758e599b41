// SPDX-License-Identifier: Apache-2.0
#include "twopc/width/split.h"

#include <algorithm>

#include "base/error.h"
#include "twopc/compare/ring_carry.h"
#include "twopc/session/chunk.h"

namespace privml::twopc {
namespace {

struct Widths {
  int bits, shift, low_bits;
  int carry() const { return std::max(bits, low_bits) - shift; }
};

// With l_b the low part of x_b and c the carry of l0 + l1: high = h0 + h1 + c, low = l0 + l1 -
// 2^shift c.
void split_chunk(ot::Party& party, std::span<const u64> x, Widths w, std::span<u64> high,
                 std::span<u64> low) {
  const i64 n = std::ssize(x);
  AlignedVector<u64> c(n);
  carry_to_ring(party, x, w.shift, w.carry(), c);
  for (i64 i = 0; i < n; ++i) {
    const u64 value = x[i];
    high[i] = (((value & low_mask(w.bits)) >> w.shift) + c[i]) & low_mask(w.bits - w.shift);
    low[i] = ((value & low_mask(w.shift)) - (c[i] << w.shift)) & low_mask(w.low_bits);
  }
}

void cost_split_chunk(ot::CostMeter& meter, i64 n, Widths w) {
  cost_carry_to_ring(meter, n, w.shift, w.carry());
}

}  // namespace

void split_number(ot::Party& party, std::span<const u64> x, int bits, int shift, int low_bits,
                  std::span<u64> high, std::span<u64> low) {
  expect(bits <= 64 && shift > 0 && shift < bits, "split: needs 0 < shift < bits <= 64");
  expect(shift <= low_bits && low_bits <= 64, "split: needs shift <= low_bits <= 64");
  expect(x.size() == high.size() && x.size() == low.size(), "split: lengths differ");
  const Widths w{bits, shift, low_bits};
  in_chunks(
      party, std::ssize(x), [&](ot::CostMeter& meter, i64 n) { cost_split_chunk(meter, n, w); },
      [&](i64 begin, i64 n) {
        split_chunk(party, x.subspan(begin, n), w, high.subspan(begin, n), low.subspan(begin, n));
      });
}

void cost_split_number(ot::CostMeter& meter, i64 n, int bits, int shift, int low_bits) {
  const Widths w{bits, shift, low_bits};
  cost_in_chunks(meter, n, [&](ot::CostMeter& m, i64 count) { cost_split_chunk(m, count, w); });
}

}  // namespace privml::twopc
