// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/row_product.h"

#include <vector>

#include "base/error.h"
#include "twopc/compare/wrap.h"
#include "twopc/product/vector_products.h"
#include "twopc/select/multiplex.h"
#include "twopc/width/bounded.h"
#include "twopc/width/extension.h"

namespace privml::twopc {
namespace {

void check(FactorFormat x, int y_bits, int ell) {
  expect(x.bits >= 1 && x.bits <= ell && y_bits >= 2 && y_bits <= ell && ell <= 64,
         "multiply_rows: widths must satisfy max(m, n) <= ell <= 64");
  expect(!x.bounded || (x.is_signed && x.bits >= 2 && !x.nonnegative),
         "multiply_rows: a bounded factor is signed, and nothing else is known of it");
  expect(!x.negative, "multiply_rows: x's most significant bit may be known as 0");
}

void extend_factor(ot::Party& party, std::span<const u64> x, FactorFormat f, int ell,
                   std::span<u64> out) {
  if (f.nonnegative) return extend_nonnegative(party, x, f.bits, ell, out);
  if (f.bounded) return extend_bounded(party, x, f.bits, u64{1} << (f.bits - 2), ell, out);
  return (f.is_signed ? sign_extend : zero_extend)(party, x, f.bits, ell, out);
}

std::vector<ProductBlock> blocks_of(i64 rows, i64 length) {
  return std::vector<ProductBlock>(rows, {1, 1, length});
}

}  // namespace

void multiply_rows(ot::Party& party, std::span<const u64> x, FactorFormat x_format,
                   std::span<const u64> y, int y_bits, int ell, std::span<u64> out) {
  check(x_format, y_bits, ell);
  const i64 rows = std::ssize(y), length = rows == 0 ? 0 : std::ssize(x) / rows;
  expect(std::ssize(x) == rows * length && out.size() == x.size(),
         "multiply_rows: x and out must have rows of one length");
  if (x.empty()) return;
  std::vector<u64> wide(x.size()), number(rows), carried(x.size(), 0);
  extend_factor(party, x, x_format, ell, wide);
  for (i64 r = 0; r < rows; ++r) number[r] = y[r] & low_mask(y_bits);
  if (y_bits < ell) {
    std::vector<u8> wraps(rows);
    wrap_known_msb(party, number, y_bits, 0, wraps);
    multiplex_vectors(party, wraps, wide, length, ell - y_bits, carried);
  }
  vector_products(party, blocks_of(rows, length), {y_bits, false, ell}, number, wide, out);
  for (i64 r = 0; r < rows; ++r)
    for (i64 j = r * length; j < (r + 1) * length; ++j) {
      const u64 wrapped = y_bits < ell ? carried[j] << y_bits : 0;
      out[j] = (out[j] + number[r] * wide[j] - wrapped) & low_mask(ell);
    }
}

void cost_multiply_rows(ot::CostMeter& meter, i64 rows, i64 length, FactorFormat x_format,
                        int y_bits, int ell) {
  check(x_format, y_bits, ell);
  const i64 n = rows * length;
  if (n == 0) return;
  if (x_format.nonnegative) {
    cost_extend_nonnegative(meter, n, x_format.bits, ell);
  } else if (x_format.bounded) {
    cost_extend_bounded(meter, n, x_format.bits, u64{1} << (x_format.bits - 2), ell);
  } else {
    cost_extend(meter, n, x_format.bits, ell);
  }
  if (y_bits < ell) {
    cost_wrap_known_msb(meter, rows);
    cost_multiplex_vectors(meter, rows, length, ell - y_bits);
  }
  cost_vector_products(meter, {true, true}, blocks_of(rows, length), {y_bits, false, ell});
}

}  // namespace privml::twopc
