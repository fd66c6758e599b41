// SPDX-License-Identifier: Apache-2.0
#include "lattice/scalar_product.h"

#include <algorithm>

#include "base/error.h"
#include "base/multiversion.h"
#include "linear/product.h"

namespace privml::lattice {
namespace {

constexpr i64 kTile = 1024;  // columns at once

PRIVML_TARGET_CLONES
void widen(const u16* in, i64 count, u64* out) {
  for (i64 i = 0; i < count; ++i) out[i] = in[i];
}

// `sums` are signed in `bits` bits.
PRIVML_TARGET_CLONES
void carry(const u64* sums, i64 count, int bits, int low_bits, u64* high, u16* low) {
  const u64 offset = u64{1} << (bits - 1), mask = low_mask(low_bits);
  const u64 kept = low_mask(bits);
  for (i64 i = 0; i < count; ++i) {
    const u64 sum = (sums[i] + offset) & kept;
    high[i] += (sum >> low_bits) - (offset >> low_bits);
    low[i] = static_cast<u16>(sum & mask);
  }
}

}  // namespace

void multiply_scalars(std::span<const u64> weights, i64 rows, i64 inner, u64 largest, WordsView in,
                      i64 columns, int low_bits, WordsOutput out) {
  expect(std::ssize(weights) == rows * inner && in.size() == inner * columns &&
             out.size() == rows * columns,
         "lattice: the product's shapes do not fit");
  expect(low_bits >= 0 && low_bits <= kMostLowBits, "lattice: words have 64 to 80 bits");
  expect(largest < (u64{1} << 47) / std::max<i64>(inner, 1), "lattice: weights are too large");
  const int bits = static_cast<u64>(inner) * largest <= low_mask(31) >> low_bits ? 32 : 64;
  const std::vector<i64> row = linear::strided(rows, inner), each = linear::strided(inner, 1);
  const std::vector<i64> in_row = linear::strided(inner, columns);
  const std::vector<i64> out_row = linear::strided(rows, columns);
  const std::vector<i64> column = linear::strided(columns, 1);
  std::ranges::fill(out.high, 0);
  linear::add_product({weights.data(), row, each}, {in.high.data(), in_row, column}, 64,
                      {out.high.data(), out_row, column});
  if (low_bits == 0) {
    std::ranges::fill(out.low, u16{0});
    return;
  }
  for (i64 first = 0; first < columns; first += kTile) {
    const i64 width = std::min(kTile, columns - first);
    const std::vector<i64> tile_inner = linear::strided(inner, width);
    const std::vector<i64> tile_row = linear::strided(rows, width);
    const std::vector<i64> place = linear::strided(width, 1);
    WipedVector<u64> low(inner * width), sums(rows * width);
    for (i64 k = 0; k < inner; ++k)
      widen(in.low.data() + k * columns + first, width, low.data() + k * width);
    std::ranges::fill(sums, 0);
    linear::add_product({weights.data(), row, each}, {low.data(), tile_inner, place}, bits,
                        {sums.data(), tile_row, place});
    for (i64 i = 0; i < rows; ++i)
      carry(sums.data() + i * width, width, bits, low_bits, out.high.data() + i * columns + first,
            out.low.data() + i * columns + first);
  }
}

}  // namespace privml::lattice
