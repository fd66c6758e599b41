// SPDX-License-Identifier: Apache-2.0
#include "linear/product.h"

#include <algorithm>
#include <bit>

#include "base/buffer.h"
#include "base/error.h"
#include "base/multiversion.h"
#include "base/parallel.h"
#include "linear/few_rows.h"
#include "linear/packing.h"

namespace privml::linear {
namespace {

constexpr i64 kInnerBytes = 2048;  // of one lane: a panel of b fills most of a first cache
constexpr i64 kBlockRows = 192;    // of a, packed at once: within a second cache
constexpr i64 kWorkPerThread = i64{1} << 22;  // products that are worth starting a thread for

PRIVML_TARGET_CLONES
void add_row32(const u32* sums, i64 count, u64 mask, u64* out) {
  for (i64 j = 0; j < count; ++j) out[j] = (out[j] + sums[j]) & mask;
}
PRIVML_TARGET_CLONES
void add_row64(const u64* sums, i64 count, u64 mask, u64* out) {
  for (i64 j = 0; j < count; ++j) out[j] = (out[j] + sums[j]) & mask;
}
void add_row(const u32* sums, i64 count, u64 mask, u64* out) { add_row32(sums, count, mask, out); }
void add_row(const u64* sums, i64 count, u64 mask, u64* out) { add_row64(sums, count, mask, out); }

// Adds the tile to the output's given rows and columns.
template <class Word>
void add_tile(const Word* tile, i64 width, u64 mask, const IndexedOutput& out) {
  const i64 columns = std::ssize(out.column);
  const bool dense = follow_each_other(out.column);
  for (const i64 row : out.row) {
    if (dense) {
      add_row(tile, columns, mask, out.words + row + out.column[0]);
    } else {
      for (i64 j = 0; j < columns; ++j) {
        u64& word = out.words[row + out.column[j]];
        word = (word + tile[j]) & mask;
      }
    }
    tile += width;
  }
}

template <class Word>
void add_blocks(const IndexedMatrix& a, const IndexedMatrix& b, u64 mask, const IndexedOutput& out,
                const Kernels<Word>& kernels) {
  if (are_few_rows(a, b)) return add_few_rows(a, b, std::bit_width(mask), out);
  const i64 inner_block = kInnerBytes / static_cast<i64>(sizeof(Word));
  const i64 rows = std::ssize(a.row), inner = std::ssize(a.column), columns = std::ssize(b.column);
  const i64 block_inner = std::min(inner_block, inner), block_rows = std::min(kBlockRows, rows);
  AlignedVector<Word> left(block_rows * block_inner), right(kernels.columns * block_inner),
      tile(kernels.rows * kernels.columns);
  for (i64 i0 = 0; i0 < rows; i0 += kBlockRows) {
    const i64 height = std::min(kBlockRows, rows - i0);
    for (i64 k0 = 0; k0 < inner; k0 += inner_block) {
      const i64 depth = std::min(inner_block, inner - k0);
      for (i64 i = 0; i < height; i += kernels.rows) {
        const i64 count = std::min(kernels.rows, height - i);
        pack(a.words, a.row.subspan(i0 + i, count), a.column.subspan(k0, depth), count,
             left.data() + i * depth);
      }
      for (i64 j = 0; j < columns; j += kernels.columns) {
        const i64 width = std::min(kernels.columns, columns - j);
        pack(b.words, b.column.subspan(j, width), b.row.subspan(k0, depth), kernels.columns,
             right.data());
        for (i64 i = 0; i < height; i += kernels.rows) {
          const i64 count = std::min(kernels.rows, height - i);
          kernels.of[count](left.data() + i * depth, right.data(), depth, tile.data());
          add_tile(tile.data(), kernels.columns, mask,
                   {out.words, out.row.subspan(i0 + i, count), out.column.subspan(j, width)});
        }
      }
    }
  }
}

// Lanes that the kernels compute for `count` columns, wasted ones included.
i64 lanes(i64 count, i64 columns) { return ceil_div(count, columns) * columns; }

template <class Word>
void add_with(const IndexedMatrix& a, const IndexedMatrix& b, u64 mask, const IndexedOutput& out,
              int threads, const Kernels<Word>& kernels) {
  const i64 rows = std::ssize(a.row), inner = std::ssize(a.column), columns = std::ssize(b.column);
  if (lanes(rows, kernels.columns) * columns < lanes(columns, kernels.columns) * rows) {
    const IndexedMatrix left{b.words, b.column, b.row}, right{a.words, a.column, a.row};
    const IndexedOutput turned{out.words, out.column, out.row};
    return add_with(left, right, mask, turned, threads, kernels);
  }
  // Threads share out whole panels of columns, or of rows if there are more of those.
  const bool by_columns = columns / kernels.columns >= rows / kernels.rows;
  const i64 count = by_columns ? columns : rows, unit = by_columns ? kernels.columns : kernels.rows;
  const i64 useful = std::min<i64>(threads, rows * inner * columns / kWorkPerThread);
  in_parallel(count, unit, static_cast<int>(useful), [&](i64 first, i64 number) {
    if (by_columns) {
      add_blocks(a, {b.words, b.row, b.column.subspan(first, number)}, mask,
                 {out.words, out.row, out.column.subspan(first, number)}, kernels);
    } else {
      add_blocks({a.words, a.row.subspan(first, number), a.column}, b, mask,
                 {out.words, out.row.subspan(first, number), out.column}, kernels);
    }
  });
}

}  // namespace

std::vector<i64> strided(i64 count, i64 stride) {
  std::vector<i64> offsets(count);
  for (i64 i = 0; i < count; ++i) offsets[i] = i * stride;
  return offsets;
}

void add_product(const IndexedMatrix& a, const IndexedMatrix& b, int bits, IndexedOutput out,
                 int threads, Backend backend) {
  expect(bits >= 1 && bits <= 64, "product: bits must be 1 to 64");
  expect(threads >= 1, "product: threads must be positive");
  expect(a.column.size() == b.row.size() && a.row.size() == out.row.size() &&
             b.column.size() == out.column.size(),
         "product: shapes do not fit");
  if (a.row.empty() || a.column.empty() || b.column.empty()) return;
  if (bits <= 32) {
    add_with(a, b, low_mask(bits), out, threads, kernels_of<u32>(backend));
  } else {
    add_with(a, b, low_mask(bits), out, threads, kernels_of<u64>(backend));
  }
}

}  // namespace privml::linear
