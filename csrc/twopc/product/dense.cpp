// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/dense.h"

#include <algorithm>

#include "base/buffer.h"
#include "linear/product.h"

namespace privml::twopc {

std::vector<u64> ring_elements(std::span<const u64> words, KnownFormat format, int ell) {
  std::vector<u64> out(words.size());
  for (size_t i = 0; i < words.size(); ++i) out[i] = format(words[i]) & low_mask(ell);
  return out;
}

std::vector<u64> transposed(std::span<const u64> matrix, i64 rows, i64 columns) {
  std::vector<u64> out(matrix.size());
  transpose(matrix, rows, columns, out);
  return out;
}

void transpose(std::span<const u64> matrix, i64 rows, i64 columns, std::span<u64> out) {
  constexpr i64 kTile = kCacheLine / sizeof(u64);
  for (i64 r0 = 0; r0 < rows; r0 += kTile)
    for (i64 c0 = 0; c0 < columns; c0 += kTile)
      for (i64 r = r0; r < std::min(r0 + kTile, rows); ++r)
        for (i64 c = c0; c < std::min(c0 + kTile, columns); ++c)
          out[c * rows + r] = matrix[r * columns + c];
}

void add_product(std::span<const u64> x, std::span<const u64> y, const MatrixShape& shape, int ell,
                 std::span<u64> out) {
  const std::vector<i64> rows = linear::strided(shape.rows, shape.inner);
  const std::vector<i64> inner = linear::strided(shape.inner, 1);
  const std::vector<i64> inner_rows = linear::strided(shape.inner, shape.columns);
  const std::vector<i64> columns = linear::strided(shape.columns, 1);
  const std::vector<i64> out_rows = linear::strided(shape.rows, shape.columns);
  linear::add_product({x.data(), rows, inner}, {y.data(), inner_rows, columns}, ell,
                      {out.data(), out_rows, columns});
}

}  // namespace privml::twopc
