// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "base/error.h"
#include "twopc/product/cross_terms.h"
#include "twopc/product/dense.h"
#include "twopc/product/vector_products.h"

namespace privml {
namespace {

// x * y with choices on the right is the transpose of y^T * x^T with choices on the left.
struct Orientation {
  bool by_left;
  ProductBlock block;
  ProductFormat format;
};

Orientation orient(const MatrixShape& shape, KnownFormat left, KnownFormat right, int ell,
                   ChoiceSide side) {
  if (side == ChoiceSide::automatic) side = choose_side(shape, left, right, ell);
  if (side == ChoiceSide::left)
    return {true, {shape.rows, shape.inner, shape.columns}, {left.bits, left.is_signed, ell}};
  return {false, {shape.columns, shape.inner, shape.rows}, {right.bits, right.is_signed, ell}};
}

// The operand as choices or correlations of the oriented product; empty stays empty.
std::vector<u64> prepared(std::span<const u64> words, bool is_left, const Orientation& o,
                          const MatrixShape& shape, KnownFormat format, int ell) {
  std::vector<u64> operand = ring_elements(words, format, is_left == o.by_left ? 64 : ell);
  if (o.by_left || words.empty()) return operand;
  return is_left ? transposed(operand, shape.rows, shape.inner)
                 : transposed(operand, shape.inner, shape.columns);
}

void run(Party& party, const std::vector<u64>& left, const std::vector<u64>& right,
         const Orientation& o, const MatrixShape& shape, std::span<u64> out) {
  vector_products(party, {&o.block, 1}, o.format, o.by_left ? left : right,
                  o.by_left ? right : left, out);
  if (o.by_left) return;
  const std::vector<u64> turned = transposed(out, shape.columns, shape.rows);
  std::copy(turned.begin(), turned.end(), out.begin());
}

}  // namespace

void matrix_cross_term(Party& party, int left_holder, std::span<const u64> mine,
                       const MatrixShape& shape, KnownFormat left, KnownFormat right, int ell,
                       ChoiceSide side, std::span<u64> out) {
  const bool is_left = party.rank == left_holder;
  const i64 size = is_left ? shape.rows * shape.inner : shape.inner * shape.columns;
  expect(std::ssize(mine) == size && std::ssize(out) == shape.rows * shape.columns,
         "matrix_cross_term: operand lengths must match the shape");
  const Orientation o = orient(shape, left, right, ell, side);
  const std::vector<u64> operand = prepared(mine, is_left, o, shape, is_left ? left : right, ell);
  if (is_left) {
    run(party, operand, {}, o, shape, out);
  } else {
    run(party, {}, operand, o, shape, out);
  }
}

void cost_matrix_cross_term(CostMeter& meter, int left_holder, const MatrixShape& shape,
                            KnownFormat left, KnownFormat right, int ell, ChoiceSide side) {
  const Orientation o = orient(shape, left, right, ell, side);
  const int sender = o.by_left ? 1 - left_holder : left_holder;
  cost_vector_products(meter, {sender == 0, sender == 1}, {&o.block, 1}, o.format);
}

void matrix_cross_terms(Party& party, std::span<const u64> x, std::span<const u64> y,
                        const MatrixShape& shape, KnownFormat left, KnownFormat right, int ell,
                        ChoiceSide side, std::span<u64> out) {
  expect(std::ssize(x) == shape.rows * shape.inner &&
             std::ssize(y) == shape.inner * shape.columns &&
             std::ssize(out) == shape.rows * shape.columns,
         "matrix_cross_terms: operand lengths must match the shape");
  const Orientation o = orient(shape, left, right, ell, side);
  run(party, prepared(x, true, o, shape, left, ell), prepared(y, false, o, shape, right, ell), o,
      shape, out);
}

void cost_matrix_cross_terms(CostMeter& meter, const MatrixShape& shape, KnownFormat left,
                             KnownFormat right, int ell, ChoiceSide side) {
  const Orientation o = orient(shape, left, right, ell, side);
  cost_vector_products(meter, {true, true}, {&o.block, 1}, o.format);
}

}  // namespace privml
