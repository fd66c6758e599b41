// SPDX-License-Identifier: Apache-2.0
#include "twopc/width/truncation.h"

#include <array>
#include <vector>

#include "base/error.h"
#include "twopc/compare/comparison.h"
#include "twopc/compare/ring_carry.h"
#include "twopc/product/private_product.h"
#include "twopc/select/random_selection.h"
#include "twopc/session/chunk.h"
#include "twopc/width/conversion.h"
#include "twopc/width/extension.h"

namespace privml::twopc {
namespace {

void check(std::span<const u64> x, int bits, int shift, std::span<const u64> out) {
  expect(bits >= 1 && bits <= 64, "truncation: bits must be in 1..64");
  expect(shift >= 0 && shift < bits, "truncation: shift must be in 0..bits-1");
  expect(x.size() == out.size(), "truncation: out must be as long as x");
}

// With u_b and v_b the high and low part of x_b, c the carry of v0 + v1 and w the carry of x0 + x1:
// floor(x / 2^shift) = u0 + u1 + c - 2^(bits - shift) w (SiRNN, Algorithm 2), of x + 2^(bits-1)
// in place of x.
void truncate_chunk(ot::Party& party, std::span<const u64> x, int bits, int shift,
                    std::span<u64> out) {
  const i64 n = std::ssize(x);
  const u64 mask = low_mask(bits);
  const u64 added = party.rank == 0 ? u64{1} << (bits - 1) : 0;
  for (i64 i = 0; i < n; ++i) out[i] = (x[i] + added) & mask;
  RandomBits low, all;
  Comparison carries;
  write_random_bits(party, n, bits, low);
  write_random_bits(party, n, shift, all);
  begin_comparison(party, {bits, shift}, out, carry_flip(party.rank), carries);
  read_random_bits(party, low);
  read_random_bits(party, all);
  finish_comparison(party, carries);
  AlignedVector<u64> c(n), w(n);
  const PendingConversion conversions[] = {{low, low_greater_of(carries), c},
                                           {all, greater_of(carries), w}};
  finish_conversions(party, conversions);
  const u64 removed = added >> shift;
  for (i64 i = 0; i < n; ++i) {
    out[i] = ((out[i] >> shift) + c[i] - (w[i] << (bits - shift)) - removed) & mask;
  }
}

void cost_truncate_chunk(ot::CostMeter& meter, i64 n, int bits, int shift) {
  const ComparisonShape shape{bits, shift};
  cost_draw_random_bits(meter, n, bits);
  cost_draw_random_bits(meter, n, shift);
  cost_draw_comparison(meter, shape, n);
  cost_flight(meter, random_bits_flight(n, bits) + random_bits_flight(n, shift) +
                         comparison_flight(meter, shape, n));
  cost_finish_comparison(meter, shape, n);
  cost_finish_conversions(meter, n, std::array{bits, shift});
}

// The most significant bit being zero, w is the OR of the shares' ones: m0 + m1 - m0 m1. `added`,
// below 2^shift, goes to party 0's share as an integer: w stays that of x.
void truncate_nonnegative_chunk(ot::Party& party, std::span<const u64> x, int bits, int shift,
                                u64 added, std::span<u64> out) {
  const i64 n = std::ssize(x);
  const u64 mask = low_mask(bits);
  const u64 plus = party.rank == 0 ? added : 0;
  std::vector<u8> top(n);
  AlignedVector<u64> low_part(n);
  for (i64 i = 0; i < n; ++i) {
    top[i] = x[i] >> (bits - 1) & 1;
    low_part[i] = (x[i] & low_mask(shift)) + plus;
  }
  RandomBits low;
  PrivateProduct tops;
  Comparison carries;
  write_random_bits(party, n, bits, low);
  write_private_product(party, top, shift, tops);
  begin_comparison(party, {shift}, low_part, carry_flip(party.rank), carries);
  read_random_bits(party, low);
  AlignedVector<u64> c(n), both(n);
  read_private_product(party, tops, both);
  finish_comparison(party, carries);
  const PendingConversion conversions[] = {{low, greater_of(carries), c}};
  finish_conversions(party, conversions);
  for (i64 i = 0; i < n; ++i) {
    const u64 w = top[i] - both[i];
    const u64 high = ((x[i] & mask) >> shift) + (low_part[i] >> shift);
    out[i] = (high + c[i] - (w << (bits - shift))) & mask;
  }
}

void cost_truncate_nonnegative_chunk(ot::CostMeter& meter, i64 n, int bits, int shift) {
  const ComparisonShape shape{shift};
  cost_draw_random_bits(meter, n, bits);
  cost_draw_private_product(meter, n);
  cost_draw_comparison(meter, shape, n);
  cost_flight(meter, random_bits_flight(n, bits) + private_product_flight(n, shift) +
                         comparison_flight(meter, shape, n));
  cost_finish_comparison(meter, shape, n);
  cost_finish_conversions(meter, n, std::array{bits});
}

// Modulo 2^(bits - shift) the carry of the whole drops out.
void truncate_reduce_chunk(ot::Party& party, std::span<const u64> x, int bits, int shift,
                           std::span<u64> out) {
  const i64 n = std::ssize(x);
  const int width = bits - shift;
  AlignedVector<u64> c(n);
  carry_to_ring(party, x, shift, width, c);
  for (i64 i = 0; i < n; ++i) {
    out[i] = (((x[i] & low_mask(bits)) >> shift) + c[i]) & low_mask(width);
  }
}

void cost_truncate_reduce_chunk(ot::CostMeter& meter, i64 n, int bits, int shift) {
  cost_carry_to_ring(meter, n, shift, bits - shift);
}

}  // namespace

void truncate_arithmetic(ot::Party& party, std::span<const u64> x, int bits, int shift,
                         std::span<u64> out) {
  check(x, bits, shift, out);
  if (shift == 0) return keep_low_bits(x, bits, out);
  in_chunks(
      party, std::ssize(x),
      [&](ot::CostMeter& meter, i64 n) { cost_truncate_chunk(meter, n, bits, shift); },
      [&](i64 begin, i64 n) {
        truncate_chunk(party, x.subspan(begin, n), bits, shift, out.subspan(begin, n));
      });
}

void cost_truncate(ot::CostMeter& meter, i64 n, int bits, int shift) {
  if (shift == 0) return;
  cost_in_chunks(meter, n,
                 [&](ot::CostMeter& m, i64 count) { cost_truncate_chunk(m, count, bits, shift); });
}

namespace {

void truncate_nonnegative(ot::Party& party, std::span<const u64> x, int bits, int shift, u64 added,
                          std::span<u64> out) {
  in_chunks(
      party, std::ssize(x),
      [&](ot::CostMeter& meter, i64 n) { cost_truncate_nonnegative_chunk(meter, n, bits, shift); },
      [&](i64 begin, i64 n) {
        truncate_nonnegative_chunk(party, x.subspan(begin, n), bits, shift, added,
                                   out.subspan(begin, n));
      });
}

}  // namespace

void truncate_nonnegative(ot::Party& party, std::span<const u64> x, int bits, int shift,
                          std::span<u64> out) {
  check(x, bits, shift, out);
  if (shift == 0) return keep_low_bits(x, bits, out);
  truncate_nonnegative(party, x, bits, shift, 0, out);
}

void round_nonnegative(ot::Party& party, std::span<const u64> x, int bits, int shift,
                       std::span<u64> out) {
  check(x, bits, shift, out);
  expect(shift >= 1, "round_nonnegative: shift must be in 1..bits-1");
  truncate_nonnegative(party, x, bits, shift, u64{1} << (shift - 1), out);
}

void cost_truncate_nonnegative(ot::CostMeter& meter, i64 n, int bits, int shift) {
  if (shift == 0) return;
  cost_in_chunks(meter, n, [&](ot::CostMeter& m, i64 count) {
    cost_truncate_nonnegative_chunk(m, count, bits, shift);
  });
}

void truncate_reduce(ot::Party& party, std::span<const u64> x, int bits, int shift,
                     std::span<u64> out) {
  check(x, bits, shift, out);
  if (shift == 0) return keep_low_bits(x, bits, out);
  in_chunks(
      party, std::ssize(x),
      [&](ot::CostMeter& meter, i64 n) { cost_truncate_reduce_chunk(meter, n, bits, shift); },
      [&](i64 begin, i64 n) {
        truncate_reduce_chunk(party, x.subspan(begin, n), bits, shift, out.subspan(begin, n));
      });
}

void cost_truncate_reduce(ot::CostMeter& meter, i64 n, int bits, int shift) {
  if (shift == 0) return;
  cost_in_chunks(meter, n, [&](ot::CostMeter& m, i64 count) {
    cost_truncate_reduce_chunk(m, count, bits, shift);
  });
}
}  // namespace privml::twopc
