// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/wrap.h"

#include <algorithm>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "twopc/compare/comparison.h"
#include "twopc/select/boolean.h"

namespace privml {
namespace {

void check_size(std::span<const u64> x, std::span<const u8> out) {
  expect(x.size() == out.size(), "wrap: outputs must be as long as x");
}

ComparisonShape split_shape(int bits, int split) {
  expect(split > 0, "wrap_split: split must be in 1..bits-1");
  return {bits, split};
}

// Own most significant bits, complemented where `flip`.
std::vector<u8> top_bits(std::span<const u64> x, int bits, u8 flip) {
  expect(bits >= 1 && bits <= 64, "wrap: bits must be in 1..64");
  std::vector<u8> top(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) top[i] = (x[i] >> (bits - 1) & 1) ^ flip;
  return top;
}

}  // namespace

void wrap(Party& party, std::span<const u64> x, int bits, std::span<u8> w) {
  check_size(x, w);
  compare_in_chunks(party, {bits}, x, carry_flip(party.rank), {w, {}, {}});
}

void cost_wrap(CostMeter& meter, i64 n, int bits) { cost_compare_in_chunks(meter, {bits}, n); }

void wrap_with_all_ones(Party& party, std::span<const u64> x, int bits, std::span<u8> w,
                        std::span<u8> all_ones) {
  check_size(x, w);
  check_size(x, all_ones);
  compare_in_chunks(party, {bits, 0, true}, x, carry_flip(party.rank), {w, all_ones, {}});
}

void cost_wrap_with_all_ones(CostMeter& meter, i64 n, int bits) {
  cost_compare_in_chunks(meter, {bits, 0, true}, n);
}

// A = -1 - x0 and B = x1 - 1, both mod 2^bits: x is zero where A = B. There is a carry where A <
// x1, that is A <= B and x1 is not 0.
void wrap_with_all_zeros(Party& party, std::span<const u64> x, int bits, std::span<u8> w,
                         std::span<u8> all_zeros) {
  check_size(x, w);
  check_size(x, all_zeros);
  const bool first = party.rank == 0;
  AlignedVector<u64> numbers(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) numbers[i] = first ? ~x[i] : x[i] - 1;
  compare_in_chunks(party, {bits, 0, true}, numbers, 0, {w, all_zeros, {}});
  if (first) {
    for (u8& bit : w) bit ^= 1;
    return;
  }
  // A > B and x1 = 0 exclude each other, since B is the largest number then.
  for (std::size_t i = 0; i < x.size(); ++i) w[i] ^= (x[i] & low_mask(bits)) == 0 ? 1 : 0;
}

void cost_wrap_with_all_zeros(CostMeter& meter, i64 n, int bits) {
  cost_compare_in_chunks(meter, {bits, 0, true}, n);
}

void wrap_split(Party& party, std::span<const u64> x, int bits, int split, std::span<u8> low_w,
                std::span<u8> w) {
  check_size(x, low_w);
  check_size(x, w);
  compare_in_chunks(party, split_shape(bits, split), x, carry_flip(party.rank), {w, {}, low_w});
}

void cost_wrap_split(CostMeter& meter, i64 n, int bits, int split) {
  cost_compare_in_chunks(meter, split_shape(bits, split), n);
}

// msb = 0: m0 | m1; msb = 1: m0 & m1.
void wrap_known_msb(Party& party, std::span<const u64> x, int bits, u8 msb, std::span<u8> w) {
  expect(msb <= 1, "wrap_known_msb: msb must be 0 or 1");
  const u8 flip = 1 ^ msb;
  and_private(party, top_bits(x, bits, flip), w);
  if (party.rank == 0) {
    for (u8& bit : w) bit ^= flip;
  }
}

void cost_wrap_known_msb(CostMeter& meter, i64 n) { cost_and_private(meter, n); }

// w = (1 ^ msb)(m0 ^ m1) ^ m0 m1. With a0 ^ a1 = 1 ^ msb this is a0 m0 ^ a1 m1, which are local,
// and two private products: a0 m1 ^ m0 (a1 ^ m1).
void wrap_shared_msb(Party& party, std::span<const u64> x, int bits, std::span<const u8> msb,
                     std::span<u8> w) {
  expect(msb.size() == x.size() && w.size() == x.size(),
         "wrap_shared_msb: msb and w must be as long as x");
  const std::size_t n = x.size();
  const std::vector<u8> top = top_bits(x, bits, 0);
  std::vector<u8> factors(2 * n), products(2 * n);
  const u8 first = party.rank == 0 ? 1 : 0;
  for (std::size_t i = 0; i < n; ++i) {
    const u8 sign = msb[i] ^ first;  // a0 or a1
    factors[i] = party.rank == 0 ? sign : top[i];
    factors[n + i] = party.rank == 0 ? top[i] : sign ^ top[i];
  }
  and_private(party, factors, products);
  for (std::size_t i = 0; i < n; ++i) {
    w[i] = ((msb[i] ^ first) & top[i]) ^ products[i] ^ products[n + i];
  }
}

void cost_wrap_shared_msb(CostMeter& meter, i64 n) { cost_and_private(meter, 2 * n); }

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
