// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/lattice_matmul.h"

#include <algorithm>

#include "base/error.h"
#include "lattice/scalar_product.h"
#include "twopc/product/agreement.h"
#include "twopc/product/dense.h"
#include "twopc/product/preprocessing.h"

namespace privml::twopc {
namespace {

using lattice::ColumnChoice;
using lattice::Digest;
using lattice::Noise;

// Rows whose columns fill a line of a cache together.
constexpr i64 kMasksAtOnce = kCacheLine / sizeof(u64);

// Whole 64-bit words, so that a scalar of a ciphertext has its sign.
std::vector<u64> scalars(std::span<const u64> weights, Operand format) {
  return ring_elements(weights, {format.bits, format.is_signed}, 64);
}

u64 largest(Operand format) { return lattice::largest_weight(format.bits, format.is_signed); }

// With the weights on the left (x) or on the right, where the other operand is turned, so that its
// rows are those of a product with weights on the right.
struct Sides {
  bool left;  // are the weights
  Operand weights, other;
  i64 rows, columns;  // of the product as it is computed
};

Sides sides_of(Operand x, Operand y, const MatrixShape& shape, int ell) {
  expect_fits(x, ell);
  expect_fits(y, ell);
  expect(shape.rows >= 1 && shape.inner >= 1 && shape.columns >= 1, "lattice: an empty product");
  // Of two owned operands the right one is the weights.
  if (y.owner == kShared) return {true, x, y, shape.columns, shape.rows};
  return {false, y, x, shape.rows, shape.columns};
}

// Calls block(first, count) for the rows or columns that fill one polynomial each time.
template <class Each>
void in_polynomials(i64 filling, i64 n, Each&& block) {
  for (i64 first = 0; first < filling; first += n) block(first, std::min(n, filling - first));
}

// The weights as ciphertext_product() takes them: outputs x inner; nothing at the client.
std::vector<u64> turned_weights(const ot::Party& party, const ProductHalves& halves,
                                const OwnedWeights& weights) {
  const auto [columns, inner] = halves.product.shape;
  const bool owns = party.rank == halves.product.owner;
  expect(weights.format.owner == halves.product.owner &&
             std::ssize(weights.words) == (owns ? inner * columns : 0),
         "lattice: the weights do not match the shape");
  if (!owns) return {};
  expect(weights.digest == halves.weights, "lattice: the weights have changed");
  expect(largest(weights.format) == halves.product.largest, "lattice: the weights' format differs");
  return transposed(scalars(weights.words, weights.format), inner, columns);
}

}  // namespace

std::optional<lattice::ColumnChoice> lattice_choice(i64 inner, Operand weights, int ell,
                                                    lattice::Noise noise) {
  if (inner < 1 || weights.bits > 32 || inner > lattice::kMostInner ||
      largest(weights) > lattice::kMostScalar)
    return std::nullopt;
  return lattice::choose_columns({inner, largest(weights), ell}, noise);
}

ProductHalves matmul_halves(const OwnedWeights& weights, i64 inner, i64 columns, int ell,
                            Bytes label, lattice::Noise noise) {
  expect_fits(weights.format, ell);
  expect(weights.format.owner != kShared, "lattice: weights are owned by a party");
  expect(inner >= 1 && columns >= 1, "lattice: an empty product");
  const auto choice = lattice_choice(inner, weights.format, ell, noise);
  expect(choice.has_value(), "lattice: no parameters serve these weights and widths");
  return {{weights.format.owner, *choice, {columns, inner}, largest(weights.format)},
          weights.digest,
          {label.begin(), label.end()}};
}

void lattice_matmul(ot::Party& party, ProductHalves& halves, Operand x_format,
                    std::span<const u64> x, const OwnedWeights& weights, i64 rows,
                    std::span<u64> out) {
  const auto [columns, inner] = halves.product.shape;
  const int ell = ring_bits(halves.product);
  const bool owns = party.rank == halves.product.owner, has_x = holds(party.rank, x_format);
  expect_fits(x_format, ell);
  expect(x_format.owner != halves.product.owner, "lattice: one party owns both operands");
  expect(std::ssize(x) == (has_x ? rows * inner : 0) && std::ssize(out) == rows * columns,
         "lattice: an operand does not match the shape");
  const std::vector<u64> turned = turned_weights(party, halves, weights);
  const std::vector<u64> elements = ring_elements(x, held_format(x_format), ell);
  WipedVector<u64> message, part;
  in_polynomials(rows, halves.product.choice.set.n, [&](i64 first, i64 count) {
    part.resize(columns * count);
    if (!owns) {
      message.resize(inner * count);
      transpose(std::span(elements).subspan(first * inner, count * inner), count, inner, message);
    }
    ciphertext_product(party, halves, count, turned, message, part);
    transpose(part, columns, count, out.subspan(first * columns, count * columns));
  });
  // The owner's own share of x.
  if (owns && has_x)
    add_product(elements, scalars(weights.words, weights.format), {rows, inner, columns}, ell, out);
}

void cost_lattice_matmul(ot::CostMeter& meter, const CiphertextProduct& product, i64 rows,
                         i64 batch) {
  in_polynomials(rows, product.choice.set.n,
                 [&](i64, i64 count) { cost_ciphertext_product(meter, product, batch++, count); });
}

void lattice_matmul(ot::Party& party, Operand x_format, std::span<const u64> x, Operand y_format,
                    std::span<const u64> y, const MatrixShape& shape, int ell, std::span<u64> out,
                    const CiphertextOptions& options) {
  const auto [left, format, other, rows, columns] = sides_of(x_format, y_format, shape, ell);
  expect(std::ssize(x) == (holds(party.rank, x_format) ? shape.rows * shape.inner : 0) &&
             std::ssize(y) == (holds(party.rank, y_format) ? shape.inner * shape.columns : 0) &&
             std::ssize(out) == shape.rows * shape.columns,
         "lattice: an operand does not match the shape");
  const auto halves_for = [&](const OwnedWeights& weights) {
    ProductHalves halves = matmul_halves(weights, shape.inner, columns, ell, {}, options.noise);
    halves.threads = options.threads;
    return halves;
  };
  if (!left) {
    const OwnedWeights weights{format, y};
    ProductHalves halves = halves_for(weights);
    return lattice_matmul(party, halves, other, x, weights, rows, out);
  }
  const auto turned = [](std::span<const u64> a, i64 height, i64 width) {
    return a.empty() ? std::vector<u64>{} : transposed(a, height, width);
  };
  const std::vector<u64> words = turned(x, shape.rows, shape.inner);
  const std::vector<u64> given = turned(y, shape.inner, shape.columns);
  const OwnedWeights weights{format, words};
  ProductHalves halves = halves_for(weights);
  WipedVector<u64> product(out.size());
  lattice_matmul(party, halves, other, given, weights, rows, product);
  transpose(product, rows, columns, out);
}

void cost_lattice_matmul(ot::CostMeter& meter, Operand x_format, Operand y_format,
                         const MatrixShape& shape, int ell, lattice::Noise noise) {
  const Sides sides = sides_of(x_format, y_format, shape, ell);
  const ProductHalves halves =
      matmul_halves({sides.weights}, shape.inner, sides.columns, ell, {}, noise);
  expect(sides.other.owner != sides.weights.owner, "lattice: one party owns both operands");
  cost_lattice_matmul(meter, halves.product, sides.rows, 0);
}

PreparedProduct prepare_matmul(ot::Party& party, ProductHalves& halves, const OwnedWeights& weights,
                               i64 rows) {
  const auto [columns, inner] = halves.product.shape;
  const int ell = ring_bits(halves.product);
  const bool owns = party.rank == halves.product.owner;
  expect(rows >= 1, "lattice: an empty product");
  PreparedProduct prepared{
      halves.product.owner, {rows, inner, columns}, ell, owns ? weights.digest : Digest{}};
  prepared.share.resize(rows * columns);
  const std::vector<u64> turned = turned_weights(party, halves, weights);
  if (!owns) {
    prepared.row_seeds.resize(rows);
    party.prg.fill_blocks(prepared.row_seeds.data(), rows);
  }
  in_preprocessing(party, [&] {
    WipedVector<u64> masks(kMasksAtOnce * inner), message, part;
    in_polynomials(rows, halves.product.choice.set.n, [&](i64 first, i64 count) {
      part.resize(columns * count);
      if (!owns) {
        message.resize(inner * count);
        for (i64 i = 0; i < count; i += kMasksAtOnce) {
          const i64 several = std::min(kMasksAtOnce, count - i);
          for (i64 j = 0; j < several; ++j)
            fill_mask(prepared.row_seeds[first + i + j], ell,
                      std::span(masks).subspan(j * inner, inner));
          for (i64 k = 0; k < inner; ++k)
            for (i64 j = 0; j < several; ++j) message[k * count + i + j] = masks[j * inner + k];
        }
      }
      ciphertext_product(party, halves, count, turned, message, part);
      transpose(part, columns, count,
                std::span(prepared.share).subspan(first * columns, count * columns));
    });
  });
  prepared.digest = halves.digest;
  prepared.batch = halves.batches;
  return prepared;
}

void cost_prepare_matmul(ot::CostMeter& meter, const CiphertextProduct& product, i64 rows,
                         i64 batch) {
  meter_preprocessing(meter, [&] { cost_lattice_matmul(meter, product, rows, batch); });
}

void prepared_matmul(ot::Party& party, PreparedProduct prepared, Operand x_format,
                     std::span<const u64> x, const OwnedWeights& weights, std::span<u64> out) {
  const auto [rows, inner, columns] = prepared.shape;
  const int ell = prepared.ell;
  const bool owns = party.rank == prepared.owner, has_x = holds(party.rank, x_format);
  expect_fits(x_format, ell);
  expect_fits(weights.format, ell);
  expect(weights.format.owner == prepared.owner,
         "lattice: the product was prepared for another owner");
  expect(x_format.owner != prepared.owner, "lattice: one party owns both operands");
  expect(std::ssize(x) == (has_x ? rows * inner : 0) &&
             std::ssize(weights.words) == (owns ? inner * columns : 0) &&
             std::ssize(out) == rows * columns,
         "lattice: an operand does not match the shape");
  expect(std::ssize(prepared.share) == rows * columns &&
             std::ssize(prepared.row_seeds) == (owns ? 0 : rows),
         "lattice: this is the other party's half");
  const std::vector<u64> elements = ring_elements(x, held_format(x_format), ell);
  std::ranges::copy(prepared.share, out.begin());
  if (!owns) return send_masked(party, prepared, elements);
  expect(weights.digest == prepared.weights,
         "lattice: the weights have changed since the product was prepared");
  const std::vector<u64> sum = receive_masked(party, prepared, elements);
  add_product(sum, scalars(weights.words, weights.format), {rows, inner, columns}, ell, out);
}

void cost_prepared_matmul(ot::CostMeter& meter, int owner, i64 rows, i64 inner, int ell) {
  cost_masked(meter, owner, rows * inner, ell);
}

}  // namespace privml::twopc
