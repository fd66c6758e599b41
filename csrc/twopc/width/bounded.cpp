// SPDX-License-Identifier: Apache-2.0
#include "twopc/width/bounded.h"

#include <array>

#include "base/error.h"
#include "twopc/compare/comparison.h"
#include "twopc/compare/table_carry.h"
#include "twopc/select/random_selection.h"
#include "twopc/session/chunk.h"
#include "twopc/width/extension.h"
#include "twopc/width/signed_wrap.h"

namespace privml::twopc {
namespace {

// floor(int(x) / 2^shift) = u0 + u1 + c - 2^(bits - shift) MW, u_b the high part of x_b and c the
// carry of the low parts. `added`, below 2^shift, goes to party 0's share as an integer: MW stays
// that of x.
void truncate_chunk(ot::Party& party, const SignedWrapPlan& plan, std::span<const u64> x, int bits,
                    u64 bound, int shift, u64 added, std::span<u64> out) {
  const i64 n = std::ssize(x);
  const u64 mask = low_mask(bits);
  const u64 plus = party.rank == 0 ? added : 0;
  AlignedVector<u64> low_part(n);
  for (i64 i = 0; i < n; ++i) low_part[i] = (x[i] & low_mask(shift)) + plus;
  const bool by_table = prefers_table_carry(party, n, shift, bits);
  RandomBits low;
  PrivateProduct products;
  Comparison carries;
  TableCarry table;
  AlignedVector<u64> c(n), wrap(n);
  if (!by_table) write_random_bits(party, n, bits, low);
  if (plan.products > 0) write_signed_wrap(party, plan, x, bits, bound, shift, products);
  if (by_table) {
    begin_table_carry(party, low_part, shift, bits, table);
  } else {
    begin_comparison(party, {shift}, low_part, carry_flip(party.rank), carries);
    read_random_bits(party, low);
  }
  if (plan.products > 0) read_signed_wrap(party, plan, x, bits, bound, products, wrap);
  if (by_table) {
    finish_table_carry(party, table, c);
  } else {
    finish_comparison(party, carries);
    const PendingConversion conversions[] = {{low, greater_of(carries), c}};
    finish_conversions(party, conversions);
  }
  if (plan.products == 0) signed_wrap(party, x, bits, bound, shift, wrap);
  for (i64 i = 0; i < n; ++i) {
    const u64 high = ((x[i] & mask) >> shift) + (low_part[i] >> shift);
    out[i] = (high + c[i] - (wrap[i] << (bits - shift))) & mask;
  }
}

void cost_truncate_chunk(ot::CostMeter& meter, const SignedWrapPlan& plan, i64 n, int bits,
                         u64 bound, int shift) {
  const ComparisonShape shape{shift};
  const i64 products = n * plan.products;
  const Flight beside = products > 0 ? private_product_flight(products, shift) : Flight{};
  if (products > 0) cost_draw_private_product(meter, products);
  if (prefers_table_carry(meter, n, shift, bits)) {
    cost_table_carry(meter, n, shift, bits, beside);
  } else {
    cost_draw_random_bits(meter, n, bits);
    cost_draw_comparison(meter, shape, n);
    cost_flight(meter, beside + random_bits_flight(n, bits) + comparison_flight(meter, shape, n));
    cost_finish_comparison(meter, shape, n);
    cost_finish_conversions(meter, n, std::array{bits});
  }
  if (products == 0) cost_signed_wrap(meter, n, bits, bound, shift);
}

}  // namespace

void extend_bounded(ot::Party& party, std::span<const u64> x, int bits, u64 bound, int to,
                    std::span<u64> out) {
  plan_signed_wrap(bits, bound);
  expect(bits <= to && to <= 64, "extend_bounded: widths must satisfy bits <= to <= 64");
  expect(x.size() == out.size(), "extend_bounded: out must be as long as x");
  if (bits == to) return keep_low_bits(x, bits, out);
  AlignedVector<u64> wrap(x.size());
  signed_wrap(party, x, bits, bound, to - bits, wrap);
  for (std::size_t i = 0; i < x.size(); ++i) {
    out[i] = ((x[i] & low_mask(bits)) - (wrap[i] << bits)) & low_mask(to);
  }
}

void cost_extend_bounded(ot::CostMeter& meter, i64 n, int bits, u64 bound, int to) {
  if (bits < to) cost_signed_wrap(meter, n, bits, bound, to - bits);
}

namespace {

void truncate(ot::Party& party, std::span<const u64> x, int bits, u64 bound, int shift, u64 added,
              std::span<u64> out) {
  const SignedWrapPlan plan = plan_signed_wrap(bits, bound);
  in_chunks(
      party, std::ssize(x),
      [&](ot::CostMeter& meter, i64 n) { cost_truncate_chunk(meter, plan, n, bits, bound, shift); },
      [&](i64 begin, i64 n) {
        truncate_chunk(party, plan, x.subspan(begin, n), bits, bound, shift, added,
                       out.subspan(begin, n));
      });
}

}  // namespace

void truncate_bounded(ot::Party& party, std::span<const u64> x, int bits, u64 bound, int shift,
                      std::span<u64> out) {
  plan_signed_wrap(bits, bound);
  expect(shift >= 0 && shift < bits, "truncate_bounded: shift must be in 0..bits-1");
  expect(x.size() == out.size(), "truncate_bounded: out must be as long as x");
  if (shift == 0) return keep_low_bits(x, bits, out);
  truncate(party, x, bits, bound, shift, 0, out);
}

void round_bounded(ot::Party& party, std::span<const u64> x, int bits, u64 bound, int shift,
                   std::span<u64> out) {
  expect(shift >= 1 && shift < bits, "round_bounded: shift must be in 1..bits-1");
  expect(x.size() == out.size(), "round_bounded: out must be as long as x");
  truncate(party, x, bits, bound, shift, u64{1} << (shift - 1), out);
}

void cost_truncate_bounded(ot::CostMeter& meter, i64 n, int bits, u64 bound, int shift) {
  if (shift == 0) return;
  const SignedWrapPlan plan = plan_signed_wrap(bits, bound);
  cost_in_chunks(meter, n, [&](ot::CostMeter& m, i64 count) {
    cost_truncate_chunk(m, plan, count, bits, bound, shift);
  });
}

}  // namespace privml::twopc
