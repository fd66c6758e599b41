// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/packed_matmul.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "lattice/scalar_product.h"
#include "twopc/product/agreement.h"
#include "twopc/product/dense.h"

namespace privml::twopc {
namespace {

using lattice::PackedChoice;
using lattice::SwitchingSet;

u64 largest(Operand weights) { return lattice::largest_weight(weights.bits, weights.is_signed); }

PackedProduct product_with(const lattice::PackedChoice& choice, const MatrixShape& shape,
                           Operand weights) {
  const auto& [rows, inner, columns] = shape;
  return {choice, lattice::matrix_product(rows, inner, columns, largest(weights)), 1};
}

i64 bytes_of(const lattice::PackedChoice& choice, const MatrixShape& shape, Operand weights) {
  const auto [up, down] = packed_bytes_of(product_with(choice, shape, weights));
  return up + down;
}

PackedProduct product_for(const MatrixShape& shape, Operand weights, int ell,
                          const lattice::SwitchingSet& set) {
  expect_fits(weights, ell);
  expect(weights.owner != kShared, "lattice: weights are owned by a party");
  const auto choice = packed_choice(shape, weights, ell, set);
  expect(choice.has_value(), "lattice: no parameters serve this product");
  return product_with(*choice, shape, weights);
}

}  // namespace

std::optional<lattice::PackedChoice> packed_choice(const MatrixShape& shape, Operand weights,
                                                   int ell, const lattice::SwitchingSet& set) {
  const auto& [rows, inner, columns] = shape;
  if (rows < 1 || inner < 1 || columns < 1 || inner > lattice::kMostInner ||
      largest(weights) > lattice::kMostScalar)
    return std::nullopt;
  std::optional<lattice::PackedChoice> best;
  for (int level = 0; level <= set.levels && rows << level <= lattice::kPackedSet.n; ++level) {
    const auto choice = lattice::choose_packed({inner, largest(weights), ell}, level, set);
    if (choice && (!best || bytes_of(*choice, shape, weights) < bytes_of(*best, shape, weights)))
      best = choice;
  }
  return best;
}

void packed_matmul(ot::Party& party, PackingKeys& keys, Operand x_format, std::span<const u64> x,
                   Operand format, std::span<const u64> weights, const MatrixShape& shape, int ell,
                   std::span<u64> out) {
  const auto& [rows, inner, columns] = shape;
  const bool owns = party.rank == keys.owner, has_x = holds(party.rank, x_format);
  expect_fits(x_format, ell);
  expect(format.owner == keys.owner && x_format.owner != keys.owner,
         "lattice: the keys serve products with another party's weights");
  const PackedProduct product = product_for(shape, format, ell, keys.set);
  expect(std::ssize(x) == (has_x ? rows * inner : 0) &&
             std::ssize(weights) == (owns ? inner * columns : 0) &&
             std::ssize(out) == rows * columns,
         "lattice: an operand does not match the shape");
  const std::vector<u64> elements = ring_elements(x, held_format(x_format), ell);
  const std::vector<u64> words = ring_elements(weights, {format.bits, format.is_signed}, 64);
  const auto turned = [](std::span<const u64> a, i64 height, i64 width) {
    return a.empty() ? std::vector<u64>{} : transposed(a, height, width);
  };
  std::vector<u64> message;
  if (!owns) message = turned(elements, rows, inner);
  WipedVector<u64> lying(out.size());
  packed_product(party, keys, product, turned(words, inner, columns), message, lying);
  std::ranges::copy(transposed(lying, columns, rows), out.begin());
  // The owner's own share of x.
  if (owns && has_x) add_product(elements, words, shape, ell, out);
}

void cost_packed_matmul(ot::CostMeter& meter, const lattice::SwitchingSet& set, i64 products,
                        Operand format, const MatrixShape& shape, int ell) {
  cost_packed_product(meter, {format.owner, set, products}, product_for(shape, format, ell, set));
}

}  // namespace privml::twopc
