// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/matmul.h"

#include <vector>

#include "base/error.h"
#include "twopc/product/dense.h"
#include "twopc/product/vector_products.h"

namespace privml::twopc {
namespace {

// The products x_r * y_{1-r} to be made by transfers: left_holders[r] is set when party r's x meets
// the other party's y.
std::array<bool, 2> cross_products(Operand x, Operand y) {
  std::array<bool, 2> left_holders{};
  for (int r : {0, 1}) left_holders[r] = holds(r, x) && holds(1 - r, y);
  return left_holders;
}

ChoiceSide resolve(ChoiceSide side, const MatrixShape& shape, Operand x, Operand y, int ell) {
  return side == ChoiceSide::automatic ? choose_side(shape, held_format(x), held_format(y), ell)
                                       : side;
}

}  // namespace

void matmul(ot::Party& party, Operand x_format, std::span<const u64> x, Operand y_format,
            std::span<const u64> y, const MatrixShape& shape, int ell, std::span<u64> out,
            ChoiceSide side) {
  expect_fits(x_format, ell);
  expect_fits(y_format, ell);
  expect(shape.rows >= 0 && shape.inner >= 0 && shape.columns >= 0, "matmul: negative shape");
  const bool has_x = holds(party.rank, x_format), has_y = holds(party.rank, y_format);
  expect(!has_x || std::ssize(x) == shape.rows * shape.inner, "matmul: x does not match the shape");
  expect(!has_y || std::ssize(y) == shape.inner * shape.columns,
         "matmul: y does not match the shape");
  expect(std::ssize(out) == shape.rows * shape.columns, "matmul: out does not match the shape");
  const std::array<bool, 2> left_holders = cross_products(x_format, y_format);
  side = resolve(side, shape, x_format, y_format, ell);
  const KnownFormat left = held_format(x_format), right = held_format(y_format);
  std::fill(out.begin(), out.end(), 0);
  if (left_holders[0] && left_holders[1]) {
    matrix_cross_terms(party, x, y, shape, left, right, ell, side, out);
  } else if (left_holders[0] || left_holders[1]) {
    const int holder = left_holders[0] ? 0 : 1;
    matrix_cross_term(party, holder, party.rank == holder ? x : y, shape, left, right, ell, side,
                      out);
  }
  if (has_x && has_y)
    add_product(ring_elements(x, left, ell), ring_elements(y, right, ell), shape, ell, out);
}

void cost_matmul(ot::CostMeter& meter, Operand x_format, Operand y_format, const MatrixShape& shape,
                 int ell, ChoiceSide side) {
  const std::array<bool, 2> left_holders = cross_products(x_format, y_format);
  side = resolve(side, shape, x_format, y_format, ell);
  const KnownFormat left = held_format(x_format), right = held_format(y_format);
  if (left_holders[0] && left_holders[1]) {
    cost_matrix_cross_terms(meter, shape, left, right, ell, side);
  } else if (left_holders[0] || left_holders[1]) {
    cost_matrix_cross_term(meter, left_holders[0] ? 0 : 1, shape, left, right, ell, side);
  }
}

}  // namespace privml::twopc
