// SPDX-License-Identifier: Apache-2.0
#include "twopc/dense.h"

#include <algorithm>

#include "base/multiversion.h"

namespace privml {
namespace {

constexpr i64 kInnerBlock = 64;     // rows of y that stay in cache
constexpr i64 kColumnBlock = 1024;  // times these columns

// Four rows of y at a time, so that a row of sums is loaded and stored once for four products.
template <class Word>
[[gnu::always_inline]] inline void add_rows(const Word* x, const Word* __restrict y, i64 inner,
                                            i64 stride, i64 columns, Word* __restrict sums) {
  i64 b = 0;
  for (; b + 4 <= inner; b += 4, y += 4 * stride) {
    const Word x0 = x[b], x1 = x[b + 1], x2 = x[b + 2], x3 = x[b + 3];
    for (i64 j = 0; j < columns; ++j)
      sums[j] += x0 * y[j] + x1 * y[stride + j] + x2 * y[2 * stride + j] + x3 * y[3 * stride + j];
  }
  for (; b < inner; ++b, y += stride)
    for (i64 j = 0; j < columns; ++j) sums[j] += x[b] * y[j];
}

template <class Word>
[[gnu::always_inline]] inline void add_blocks(const Word* x, const Word* y, const MatrixShape& s,
                                              Word* sums) {
  for (i64 column = 0; column < s.columns; column += kColumnBlock) {
    const i64 columns = std::min(kColumnBlock, s.columns - column);
    for (i64 b = 0; b < s.inner; b += kInnerBlock) {
      const i64 inner = std::min(kInnerBlock, s.inner - b);
      for (i64 row = 0; row < s.rows; ++row)
        add_rows(x + row * s.inner + b, y + b * s.columns + column, inner, s.columns, columns,
                 sums + row * s.columns + column);
    }
  }
}

PRIVML_TARGET_CLONES
void product32(const u32* x, const u32* y, const MatrixShape& s, u32* sums) {
  add_blocks(x, y, s, sums);
}
PRIVML_TARGET_CLONES
void product64(const u64* x, const u64* y, const MatrixShape& s, u64* sums) {
  add_blocks(x, y, s, sums);
}

}  // namespace

std::vector<u64> ring_elements(std::span<const u64> words, KnownFormat format, int ell) {
  std::vector<u64> out(words.size());
  for (size_t i = 0; i < words.size(); ++i) {
    const u64 value = format.is_signed ? static_cast<u64>(to_signed(words[i], format.bits))
                                       : words[i] & low_mask(format.bits);
    out[i] = value & low_mask(ell);
  }
  return out;
}

std::vector<u64> transposed(std::span<const u64> matrix, i64 rows, i64 columns) {
  constexpr i64 kTile = 16;
  std::vector<u64> out(matrix.size());
  for (i64 r0 = 0; r0 < rows; r0 += kTile)
    for (i64 c0 = 0; c0 < columns; c0 += kTile)
      for (i64 r = r0; r < std::min(r0 + kTile, rows); ++r)
        for (i64 c = c0; c < std::min(c0 + kTile, columns); ++c)
          out[c * rows + r] = matrix[r * columns + c];
  return out;
}

void add_product(std::span<const u64> x, std::span<const u64> y, const MatrixShape& shape, int ell,
                 std::span<u64> out) {
  const u64 mask = low_mask(ell);
  if (ell > 32) {
    product64(x.data(), y.data(), shape, out.data());
    for (u64& value : out) value &= mask;
    return;
  }
  const std::vector<u32> narrow_x(x.begin(), x.end()), narrow_y(y.begin(), y.end());
  std::vector<u32> sums(out.size());
  product32(narrow_x.data(), narrow_y.data(), shape, sums.data());
  for (size_t i = 0; i < out.size(); ++i) out[i] = (out[i] + sums[i]) & mask;
}

}  // namespace privml
