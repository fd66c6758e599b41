// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/lattice_matmul.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/pack.h"
#include "twopc/product/ciphertext_product.h"
#include "twopc/product/dense.h"

namespace privml {
namespace {

using lattice::ColumnChoice;
using lattice::Noise;

// Whole 64-bit words, so that a scalar of a ciphertext has its sign.
std::vector<u64> scalars(std::span<const u64> weights, Operand format) {
  return ring_elements(weights, {format.bits, format.is_signed}, 64);
}

u64 largest(Operand format) { return lattice::largest_weight(format.bits, format.is_signed); }

ColumnChoice choice_for(i64 inner, Operand weights, int ell, Noise noise) {
  const auto choice = lattice_choice(inner, weights, ell, noise);
  expect(choice.has_value(), "lattice: no parameters serve these weights and widths");
  return *choice;
}

// A product with the weights on the left (x) or on the right, of which the other operand's rows or
// columns fill polynomials.
struct Sides {
  bool left;  // are the weights
  Operand weights, other;
  i64 outputs, filling;  // rows and columns as ciphertext_product() sees them
};

Sides sides_of(Operand x, Operand y, const MatrixShape& shape, int ell) {
  expect_fits(x, ell);
  expect_fits(y, ell);
  expect(shape.rows >= 1 && shape.inner >= 1 && shape.columns >= 1, "lattice: an empty product");
  // Of two owned operands the right one is the weights.
  const bool left = y.owner == kShared;
  const Operand weights = left ? x : y, other = left ? y : x;
  expect(weights.owner != kShared, "lattice: no operand is owned by a party");
  expect(weights.owner != other.owner, "lattice: both operands are owned by one party");
  return {left, weights, other, left ? shape.rows : shape.columns,
          left ? shape.columns : shape.rows};
}

// Calls block(first, count) for the rows or columns that fill one polynomial each time.
template <class Each>
void in_polynomials(i64 filling, i64 n, Each&& block) {
  for (i64 first = 0; first < filling; first += n) block(first, std::min(n, filling - first));
}

// The client's mask for one row.
void fill_mask(Block seed, int ell, std::span<u64> row) { Prg(seed).fill_ring(row, ell); }

// Books what `body` does under Phase::preprocess, besides what it books there itself.
template <class Body>
void in_preprocessing(Party& party, Body&& body) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  PhaseCount& book = party.ledger.phases[static_cast<int>(Phase::preprocess)];
  const Traffic before = party.channel.traffic();
  const PhaseCount booked = book;
  body();
  party.channel.flush();
  const Traffic after = party.channel.traffic();
  book.sent = booked.sent + after.sent - before.sent;
  book.received = booked.received + after.received - before.received;
  book.depth = booked.depth + after.depth - before.depth;
  book.seconds = booked.seconds + std::chrono::duration<double>(Clock::now() - start).count();
}

template <class Body>
void meter_preprocessing(CostMeter& meter, Body&& body) {
  const auto bytes = meter.bytes, depth = meter.depth;
  const auto booked_bytes = meter.preprocess_bytes, booked_depth = meter.preprocess_depth;
  body();
  for (const int r : {0, 1}) {
    meter.preprocess_bytes[r] = booked_bytes[r] + meter.bytes[r] - bytes[r];
    meter.preprocess_depth[r] = booked_depth[r] + meter.depth[r] - depth[r];
  }
}

}  // namespace

std::optional<ColumnChoice> lattice_choice(i64 inner, Operand weights, int ell, Noise noise) {
  if (inner < 1 || weights.bits > 32) return std::nullopt;
  return lattice::choose_columns({inner, largest(weights), ell}, noise);
}

void expect_lattice_matmul(Operand x_format, Operand y_format, const MatrixShape& shape, int ell,
                           Noise noise) {
  choice_for(shape.inner, sides_of(x_format, y_format, shape, ell).weights, ell, noise);
}

void lattice_matmul(Party& party, Operand x_format, std::span<const u64> x, Operand y_format,
                    std::span<const u64> y, const MatrixShape& shape, int ell, std::span<u64> out,
                    Noise noise) {
  const Sides sides = sides_of(x_format, y_format, shape, ell);
  const ColumnChoice choice = choice_for(shape.inner, sides.weights, ell, noise);
  const bool owns = party.rank == sides.weights.owner, has_other = holds(party.rank, sides.other);
  const auto given_weights = sides.left ? x : y, given_other = sides.left ? y : x;
  const i64 inner = shape.inner, outputs = sides.outputs, filling = sides.filling;
  expect(std::ssize(given_weights) == (owns ? inner * outputs : 0) &&
             std::ssize(given_other) == (has_other ? inner * filling : 0) &&
             std::ssize(out) == outputs * filling,
         "lattice: an operand does not match the shape");
  std::vector<u64> weights;
  if (owns) {
    weights = scalars(given_weights, sides.weights);
    if (!sides.left) weights = transposed(weights, inner, outputs);
  }
  WipedVector<u64> other, sums(outputs * filling);
  if (has_other) {
    const auto elements = ring_elements(given_other, held_format(sides.other), ell);
    const auto lying = sides.left ? elements : transposed(elements, filling, inner);
    other.assign(lying.begin(), lying.end());
  }
  in_polynomials(filling, choice.set.n, [&](i64 first, i64 count) {
    const CiphertextProduct product{
        sides.weights.owner, choice, {outputs, inner, count}, largest(sides.weights)};
    WipedVector<u64> message, part(outputs * count);
    if (!owns) {
      message.resize(inner * count);
      for (i64 k = 0; k < inner; ++k)
        std::copy_n(other.data() + k * filling + first, count, message.data() + k * count);
    }
    ciphertext_product(party, product, weights, message, part);
    for (i64 j = 0; j < outputs; ++j)
      std::copy_n(part.data() + j * count, count, sums.data() + j * filling + first);
  });
  // The owner's own share of the other operand.
  if (owns && has_other) add_product(weights, other, {outputs, inner, filling}, ell, sums);
  if (sides.left) {
    std::ranges::copy(sums, out.begin());
  } else {
    std::ranges::copy(transposed(sums, outputs, filling), out.begin());
  }
}

void cost_lattice_matmul(CostMeter& meter, Operand x_format, Operand y_format,
                         const MatrixShape& shape, int ell, Noise noise) {
  const Sides sides = sides_of(x_format, y_format, shape, ell);
  const ColumnChoice choice = choice_for(shape.inner, sides.weights, ell, noise);
  in_polynomials(sides.filling, choice.set.n, [&](i64, i64 count) {
    cost_ciphertext_product(meter,
                            {sides.weights.owner, choice, {sides.outputs, shape.inner, count}});
  });
}

PreparedProduct prepare_matmul(Party& party, Operand format, std::span<const u64> weights,
                               const MatrixShape& shape, int ell, Bytes label, Noise noise) {
  const auto [rows, inner, columns] = shape;
  expect(rows >= 1 && inner >= 1 && columns >= 1, "lattice: an empty product");
  expect_fits(format, ell);
  expect(format.owner != kShared, "lattice: weights are owned by a party");
  const bool owns = party.rank == format.owner;
  expect(std::ssize(weights) == (owns ? inner * columns : 0),
         "lattice: the weights do not match the shape");
  const ColumnChoice choice = choice_for(inner, format, ell, noise);
  PreparedProduct prepared{format.owner, shape, ell, {}, {}, WipedVector<u64>(rows * columns)};
  std::vector<u64> turned;
  if (owns) {
    prepared.weights = fingerprint(format, weights, inner, columns);
    turned = transposed(scalars(weights, format), inner, columns);
  } else {
    prepared.row_seeds.resize(rows);
    party.prg.fill_blocks(prepared.row_seeds.data(), rows);
  }
  in_preprocessing(party, [&] {
    in_polynomials(rows, choice.set.n, [&](i64 first, i64 count) {
      const CiphertextProduct product{
          format.owner, choice, {columns, inner, count}, largest(format), label};
      WipedVector<u64> message, part(columns * count);
      if (!owns) {
        WipedVector<u64> row(inner);
        message.resize(inner * count);
        for (i64 i = 0; i < count; ++i) {
          fill_mask(prepared.row_seeds[first + i], ell, row);
          for (i64 k = 0; k < inner; ++k) message[k * count + i] = row[k];
        }
      }
      ciphertext_product(party, product, turned, message, part);
      std::ranges::copy(transposed(part, columns, count), prepared.share.begin() + first * columns);
    });
  });
  return prepared;
}

void cost_prepare_matmul(CostMeter& meter, Operand format, const MatrixShape& shape, int ell,
                         Noise noise) {
  const ColumnChoice choice = choice_for(shape.inner, format, ell, noise);
  meter_preprocessing(meter, [&] {
    in_polynomials(shape.rows, choice.set.n, [&](i64, i64 count) {
      cost_ciphertext_product(meter, {format.owner, choice, {shape.columns, shape.inner, count}});
    });
  });
}

void prepared_matmul(Party& party, PreparedProduct prepared, Operand x_format,
                     std::span<const u64> x, Operand format, std::span<const u64> weights,
                     std::span<u64> out) {
  const auto [rows, inner, columns] = prepared.shape;
  const int ell = prepared.ell;
  const bool owns = party.rank == prepared.owner, has_x = holds(party.rank, x_format);
  expect_fits(x_format, ell);
  expect_fits(format, ell);
  expect(format.owner == prepared.owner, "lattice: the product was prepared for another owner");
  expect(x_format.owner != prepared.owner, "lattice: the weights' owner knows both operands");
  expect(std::ssize(x) == (has_x ? rows * inner : 0) &&
             std::ssize(weights) == (owns ? inner * columns : 0) &&
             std::ssize(out) == rows * columns,
         "lattice: an operand does not match the shape");
  expect(std::ssize(prepared.share) == rows * columns &&
             std::ssize(prepared.row_seeds) == (owns ? 0 : rows),
         "lattice: this is the other party's half");
  const std::vector<u64> elements = ring_elements(x, held_format(x_format), ell);
  std::vector<u8> wire(packed_bytes(rows * inner, ell));
  std::ranges::copy(prepared.share, out.begin());
  if (!owns) {
    WipedVector<u64> masked(rows * inner);
    for (i64 i = 0; i < rows; ++i) {
      const std::span<u64> row = std::span(masked).subspan(i * inner, inner);
      fill_mask(prepared.row_seeds[i], ell, row);
      for (i64 k = 0; k < inner; ++k) row[k] = elements[i * inner + k] - row[k];
    }
    pack(masked.data(), rows * inner, ell, wire.data());
    party.channel.write(wire);
    return;
  }
  expect(fingerprint(format, weights, inner, columns) == prepared.weights,
         "lattice: the weights have changed since the product was prepared");
  party.channel.read(wire);
  std::vector<u64> sum(rows * inner);
  unpack(wire.data(), rows * inner, ell, sum.data());
  if (has_x)
    for (i64 i = 0; i < rows * inner; ++i) sum[i] = (sum[i] + elements[i]) & low_mask(ell);
  add_product(sum, scalars(weights, format), {rows, inner, columns}, ell, out);
}

void cost_prepared_matmul(CostMeter& meter, int owner, i64 rows, i64 inner, int ell) {
  meter.message(1 - owner, packed_bytes(rows * inner, ell));
}

}  // namespace privml
