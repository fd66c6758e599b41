// SPDX-License-Identifier: Apache-2.0
#include "linear/few_rows.h"

#include <algorithm>

#include "base/buffer.h"
#include "base/multiversion.h"

namespace privml::linear {
namespace {

constexpr i64 kFewRows = 2;
constexpr i64 kLongRow = 4096;  // sums of a row at once
constexpr i64 kRowsAtOnce = 8, kColumnsAtOnce = 4;

// sums += x[0] * y[0][..] + ... + x[7] * y[7][..]
template <class Word>
[[gnu::always_inline]] inline void add_rows(const Word* x, const u64* const* y, i64 columns,
                                            Word* sums) {
  const u64 *y0 = y[0], *y1 = y[1], *y2 = y[2], *y3 = y[3], *y4 = y[4], *y5 = y[5], *y6 = y[6],
            *y7 = y[7];
  for (i64 j = 0; j < columns; ++j)
    sums[j] += x[0] * static_cast<Word>(y0[j]) + x[1] * static_cast<Word>(y1[j]) +
               x[2] * static_cast<Word>(y2[j]) + x[3] * static_cast<Word>(y3[j]) +
               x[4] * static_cast<Word>(y4[j]) + x[5] * static_cast<Word>(y5[j]) +
               x[6] * static_cast<Word>(y6[j]) + x[7] * static_cast<Word>(y7[j]);
}
PRIVML_TARGET_CLONES
void add_rows32(const u32* x, const u64* const* y, i64 columns, u32* sums) {
  add_rows(x, y, columns, sums);
}
PRIVML_TARGET_CLONES
void add_rows64(const u64* x, const u64* const* y, i64 columns, u64* sums) {
  add_rows(x, y, columns, sums);
}
void add_rows_of(const u32* x, const u64* const* y, i64 columns, u32* sums) {
  add_rows32(x, y, columns, sums);
}
void add_rows_of(const u64* x, const u64* const* y, i64 columns, u64* sums) {
  add_rows64(x, y, columns, sums);
}

// sums[c] = x[0] * y[c][0] + x[1] * y[c][1] + ... for four c
template <class Word>
[[gnu::always_inline]] inline void sum_columns(const Word* x, const u64* const* y, i64 inner,
                                               Word* sums) {
  const u64 *y0 = y[0], *y1 = y[1], *y2 = y[2], *y3 = y[3];
  Word s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (i64 k = 0; k < inner; ++k) {
    s0 += x[k] * static_cast<Word>(y0[k]);
    s1 += x[k] * static_cast<Word>(y1[k]);
    s2 += x[k] * static_cast<Word>(y2[k]);
    s3 += x[k] * static_cast<Word>(y3[k]);
  }
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}
PRIVML_TARGET_CLONES
void sum_columns32(const u32* x, const u64* const* y, i64 inner, u32* sums) {
  sum_columns(x, y, inner, sums);
}
PRIVML_TARGET_CLONES
void sum_columns64(const u64* x, const u64* const* y, i64 inner, u64* sums) {
  sum_columns(x, y, inner, sums);
}
void sum_columns_of(const u32* x, const u64* const* y, i64 inner, u32* sums) {
  sum_columns32(x, y, inner, sums);
}
void sum_columns_of(const u64* x, const u64* const* y, i64 inner, u64* sums) {
  sum_columns64(x, y, inner, sums);
}

void add(u64& word, u64 sum, u64 mask) { word = (word + sum) & mask; }

template <class Word>
void add_by_rows(const AlignedVector<Word>& row, i64 i, const IndexedMatrix& b, u64 mask,
                 const IndexedOutput& out) {
  const i64 columns = std::ssize(b.column), inner = std::ssize(b.row);
  AlignedVector<Word> sums(kLongRow);
  for (i64 j = 0; j < columns; j += kLongRow) {
    const i64 width = std::min(kLongRow, columns - j);
    std::fill_n(sums.begin(), width, 0);
    for (i64 k = 0; k < inner; k += kRowsAtOnce) {
      Word x[kRowsAtOnce] = {};  // zeros after the last row
      const u64* y[kRowsAtOnce];
      for (i64 c = 0; c < kRowsAtOnce; ++c) {
        if (k + c < inner) x[c] = row[k + c];
        y[c] = b.words + b.row[std::min(k + c, inner - 1)] + b.column[j];
      }
      add_rows_of(x, y, width, sums.data());
    }
    for (i64 c = 0; c < width; ++c) add(out.words[out.row[i] + out.column[j + c]], sums[c], mask);
  }
}

template <class Word>
void add_by_columns(const AlignedVector<Word>& row, i64 i, const IndexedMatrix& b, u64 mask,
                    const IndexedOutput& out) {
  const i64 columns = std::ssize(b.column), inner = std::ssize(b.row);
  for (i64 j = 0; j < columns; j += kColumnsAtOnce) {
    Word sums[kColumnsAtOnce];
    const u64* y[kColumnsAtOnce];
    for (i64 c = 0; c < kColumnsAtOnce; ++c)
      y[c] = b.words + b.row[0] + b.column[std::min(j + c, columns - 1)];
    sum_columns_of(row.data(), y, inner, sums);
    for (i64 c = 0; c < std::min(kColumnsAtOnce, columns - j); ++c)
      add(out.words[out.row[i] + out.column[j + c]], sums[c], mask);
  }
}

template <class Word>
void add_rows_with(const IndexedMatrix& a, const IndexedMatrix& b, u64 mask,
                   const IndexedOutput& out) {
  const i64 inner = std::ssize(b.row);
  const bool by_rows = follow_each_other(b.column);
  AlignedVector<Word> row(inner);
  for (i64 i = 0; i < std::ssize(a.row); ++i) {
    for (i64 k = 0; k < inner; ++k) row[k] = static_cast<Word>(a.words[a.row[i] + a.column[k]]);
    by_rows ? add_by_rows(row, i, b, mask, out) : add_by_columns(row, i, b, mask, out);
  }
}

}  // namespace

bool are_few_rows(const IndexedMatrix& a, const IndexedMatrix& b) {
  return std::ssize(a.row) <= kFewRows && (follow_each_other(b.column) || follow_each_other(b.row));
}

void add_few_rows(const IndexedMatrix& a, const IndexedMatrix& b, int bits,
                  const IndexedOutput& out) {
  if (bits <= 32) {
    add_rows_with<u32>(a, b, low_mask(bits), out);
  } else {
    add_rows_with<u64>(a, b, low_mask(bits), out);
  }
}

}  // namespace privml::linear
