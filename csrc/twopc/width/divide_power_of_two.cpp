// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "base/error.h"
#include "twopc/compare/most_significant_bit.h"
#include "twopc/compare/wrap.h"
#include "twopc/select/boolean.h"
#include "twopc/session/chunk.h"
#include "twopc/width/conversion.h"
#include "twopc/width/known_msb.h"
#include "twopc/width/low_bits.h"
#include "twopc/width/truncation.h"

namespace privml {
namespace {

using Words = std::vector<u64>;
using Bits = std::vector<u8>;

// The floor u0 + u1 + c - 2^(bits - shift) w of x + 2^(bits-1) (SiRNN, Algorithm 2), plus one where
// x is negative and its low part is not zero; the carry w of all bits comes from the sign.
void divide_chunk(Party& party, std::span<const u64> x, int bits, int shift, std::span<u64> out) {
  const size_t n = x.size();
  const u64 added = party.rank == 0 ? u64{1} << (bits - 1) : 0;
  Bits negative(n), low(2 * n), zero(n);
  Words number(n), w(n), carries(2 * n);
  for (size_t i = 0; i < n; ++i) number[i] = (x[i] + added) & low_mask(bits);
  most_significant_bit(party, x, bits, negative);
  const std::span<u8> carry = std::span(low).first(n), up = std::span(low).subspan(n);
  wrap_with_all_zeros(party, x, shift, carry, zero);
  for (size_t i = 0; i < n; ++i) {
    up[i] = negative[i];
    if (party.rank != 0) continue;
    zero[i] ^= 1;
    negative[i] ^= 1;  // the sign of x + 2^(bits-1)
  }
  and_bits(party, up, zero, up);
  wrap_shared_msb_to_ring(party, number, bits, negative, shift, w);
  bits_to_ring(party, low, bits, carries);
  for (size_t i = 0; i < n; ++i)
    out[i] = ((number[i] >> shift) + carries[i] + carries[n + i] - (w[i] << (bits - shift)) -
              (added >> shift)) &
             low_mask(bits);
}

void cost_divide_chunk(CostMeter& meter, i64 n, int bits, int shift) {
  cost_most_significant_bit(meter, n, bits);
  cost_wrap_with_all_zeros(meter, n, shift);
  cost_and_bits(meter, n);
  cost_wrap_shared_msb_to_ring(meter, n, shift);
  cost_bits_to_ring(meter, 2 * n, bits);
}

}  // namespace

void divide_power_of_two(Party& party, std::span<const u64> x, int bits, int shift,
                         std::span<u64> out) {
  expect(bits >= 1 && bits <= 64, "truncation: bits must be in 1..64");
  expect(shift >= 0 && shift < bits, "truncation: shift must be in 0..bits-1");
  expect(x.size() == out.size(), "truncation: out must be as long as x");
  if (shift == 0) return keep_low_bits(x, bits, out);
  in_chunks(
      party, std::ssize(x),
      [&](CostMeter& meter, i64 n) { cost_divide_chunk(meter, n, bits, shift); },
      [&](i64 begin, i64 n) {
        divide_chunk(party, x.subspan(begin, n), bits, shift, out.subspan(begin, n));
      });
}

void cost_divide_power_of_two(CostMeter& meter, i64 n, int bits, int shift) {
  if (shift == 0) return;
  cost_in_chunks(meter, n,
                 [&](CostMeter& m, i64 count) { cost_divide_chunk(m, count, bits, shift); });
}

}  // namespace privml
