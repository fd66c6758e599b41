// SPDX-License-Identifier: Apache-2.0
#include "twopc/width/extension.h"

#include <vector>

#include "base/error.h"
#include "twopc/compare/ring_carry.h"
#include "twopc/product/private_product.h"
#include "twopc/session/chunk.h"

namespace privml::twopc {
namespace {

void check(std::span<const u64> x, int from, int to, std::span<const u64> out) {
  expect(from >= 1 && from <= to && to <= 64,
         "extension: widths must satisfy 1 <= from <= to <= 64");
  expect(x.size() == out.size(), "extension: out must be as long as x");
}

// x0 + x1 - 2^from w over the integers. A signed x is taken as x + 2^(from-1).
void extend_chunk(ot::Party& party, std::span<const u64> x, int from, int to, bool is_signed,
                  std::span<u64> out) {
  const i64 n = std::ssize(x);
  const u64 added = is_signed && party.rank == 0 ? u64{1} << (from - 1) : 0;
  for (i64 i = 0; i < n; ++i) out[i] = (x[i] + added) & low_mask(from);
  AlignedVector<u64> w(n);
  carry_to_ring(party, out, from, to - from, w);
  for (i64 i = 0; i < n; ++i) out[i] = (out[i] - (w[i] << from) - added) & low_mask(to);
}

void cost_extend_chunk(ot::CostMeter& meter, i64 n, int from, int to) {
  cost_carry_to_ring(meter, n, from, to - from);
}

void extend(ot::Party& party, std::span<const u64> x, int from, int to, bool is_signed,
            std::span<u64> out) {
  check(x, from, to, out);
  if (from == to) return keep_low_bits(x, from, out);
  in_chunks(
      party, std::ssize(x),
      [&](ot::CostMeter& meter, i64 n) { cost_extend_chunk(meter, n, from, to); },
      [&](i64 begin, i64 n) {
        extend_chunk(party, x.subspan(begin, n), from, to, is_signed, out.subspan(begin, n));
      });
}

// The most significant bit being zero, w is the OR of the shares' ones: m0 + m1 - m0 m1.
void extend_nonnegative_chunk(ot::Party& party, std::span<const u64> x, int from, int to,
                              std::span<u64> out) {
  const i64 n = std::ssize(x);
  std::vector<u8> top(n);
  for (i64 i = 0; i < n; ++i) top[i] = x[i] >> (from - 1) & 1;
  PrivateProduct tops;
  write_private_product(party, top, to - from, tops);
  AlignedVector<u64> both(n);
  read_private_product(party, tops, both);
  for (i64 i = 0; i < n; ++i) {
    out[i] = ((x[i] & low_mask(from)) - ((top[i] - both[i]) << from)) & low_mask(to);
  }
}

void cost_extend_nonnegative_chunk(ot::CostMeter& meter, i64 n, int from, int to) {
  cost_draw_private_product(meter, n);
  cost_flight(meter, private_product_flight(n, to - from));
}

}  // namespace

void zero_extend(ot::Party& party, std::span<const u64> x, int from, int to, std::span<u64> out) {
  extend(party, x, from, to, false, out);
}

void sign_extend(ot::Party& party, std::span<const u64> x, int from, int to, std::span<u64> out) {
  extend(party, x, from, to, true, out);
}

void cost_extend(ot::CostMeter& meter, i64 n, int from, int to) {
  if (from == to) return;
  cost_in_chunks(meter, n,
                 [&](ot::CostMeter& m, i64 count) { cost_extend_chunk(m, count, from, to); });
}

void extend_nonnegative(ot::Party& party, std::span<const u64> x, int from, int to,
                        std::span<u64> out) {
  check(x, from, to, out);
  if (from == to) return keep_low_bits(x, from, out);
  in_chunks(
      party, std::ssize(x),
      [&](ot::CostMeter& meter, i64 n) { cost_extend_nonnegative_chunk(meter, n, from, to); },
      [&](i64 begin, i64 n) {
        extend_nonnegative_chunk(party, x.subspan(begin, n), from, to, out.subspan(begin, n));
      });
}

void cost_extend_nonnegative(ot::CostMeter& meter, i64 n, int from, int to) {
  if (from == to) return;
  cost_in_chunks(meter, n, [&](ot::CostMeter& m, i64 count) {
    cost_extend_nonnegative_chunk(m, count, from, to);
  });
}

}  // namespace privml::twopc
