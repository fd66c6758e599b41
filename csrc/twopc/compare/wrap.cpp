// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/wrap.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "twopc/compare/comparison.h"
#include "twopc/select/boolean.h"

namespace privml::twopc {
namespace {

void check_size(std::span<const u64> x, std::span<const u8> out) {
  expect(x.size() == out.size(), "wrap: outputs must be as long as x");
}

// Own most significant bits, complemented where `flip`.
std::vector<u8> top_bits(std::span<const u64> x, int bits, u8 flip) {
  expect(bits >= 1 && bits <= 64, "wrap: bits must be in 1..64");
  std::vector<u8> top(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) top[i] = (x[i] >> (bits - 1) & 1) ^ flip;
  return top;
}

}  // namespace

void wrap(ot::Party& party, std::span<const u64> x, int bits, std::span<u8> w) {
  check_size(x, w);
  compare_in_chunks(party, {bits}, x, carry_flip(party.rank), {w, {}, {}});
}

void cost_wrap(ot::CostMeter& meter, i64 n, int bits) { cost_compare_in_chunks(meter, {bits}, n); }

void wrap_with_all_ones(ot::Party& party, std::span<const u64> x, int bits, std::span<u8> w,
                        std::span<u8> all_ones) {
  check_size(x, w);
  check_size(x, all_ones);
  compare_in_chunks(party, {bits, 0, true}, x, carry_flip(party.rank), {w, all_ones, {}});
}

void cost_wrap_with_all_ones(ot::CostMeter& meter, i64 n, int bits) {
  cost_compare_in_chunks(meter, {bits, 0, true}, n);
}

// msb = 0: m0 | m1; msb = 1: m0 & m1.
void wrap_known_msb(ot::Party& party, std::span<const u64> x, int bits, u8 msb, std::span<u8> w) {
  expect(msb <= 1, "wrap_known_msb: msb must be 0 or 1");
  const u8 flip = 1 ^ msb;
  and_private(party, top_bits(x, bits, flip), w);
  if (party.rank == 0) {
    for (u8& bit : w) bit ^= flip;
  }
}

void cost_wrap_known_msb(ot::CostMeter& meter, i64 n) { cost_and_private(meter, n); }

// w = (1 ^ msb)(m0 ^ m1) ^ m0 m1. With a0 ^ a1 = 1 ^ msb this is a0 m0 ^ a1 m1, which are local,
// and two private products: a0 m1 ^ m0 (a1 ^ m1).
void wrap_shared_msb(ot::Party& party, std::span<const u64> x, int bits, std::span<const u8> msb,
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

void cost_wrap_shared_msb(ot::CostMeter& meter, i64 n) { cost_and_private(meter, 2 * n); }

void most_significant_bit(ot::Party& party, std::span<const u64> x, int bits, std::span<u8> msb) {
  expect(bits >= 1 && bits <= 64, "most_significant_bit: bits must be in 1..64");
  expect(msb.size() == x.size(), "most_significant_bit: msb must be as long as x");
  if (bits > 1) {
    wrap(party, x, bits - 1, msb);
  } else {
    std::fill(msb.begin(), msb.end(), u8{0});
  }
  for (std::size_t i = 0; i < x.size(); ++i) msb[i] ^= x[i] >> (bits - 1) & 1;
}

void cost_most_significant_bit(ot::CostMeter& meter, i64 n, int bits) {
  if (bits > 1) cost_wrap(meter, n, bits - 1);
}

}  // namespace privml::twopc
