// SPDX-License-Identifier: Apache-2.0
#include "linear/wide.h"

#include <algorithm>

namespace privml::linear {
namespace {

// Sums that stay in registers together.
constexpr i64 kTile = 4;

template <class Function>
void for_each(i64 n, WideOutput out, Function&& function) {
  for (i64 i = 0; i < n; ++i) out.set(i, function(i));
}

template <i64 width>
void product_tile(WideView a, i64 a_step, const u64* b, Strides b_at, i64 inner, u128* sums) {
  for (i64 k = 0; k < inner; ++k, b += b_at.row) {
    const u64 low = a.low[k * a_step], high = a.high[k * a_step];
    for (i64 j = 0; j < width; ++j) {
      const u64 factor = b[j * b_at.column];
      sums[j] += u128{low} * factor + (u128{high * factor} << 64);
    }
  }
}

}  // namespace

void add_wide(WideView a, WideView b, i64 n, WideOutput out) {
  for_each(n, out, [&](i64 i) { return a[i] + b[i]; });
}

void subtract_wide(WideView a, WideView b, i64 n, WideOutput out) {
  for_each(n, out, [&](i64 i) { return a[i] - b[i]; });
}

void negate_wide(WideView a, i64 n, WideOutput out) {
  for_each(n, out, [&](i64 i) { return -a[i]; });
}

void multiply_wide(WideView a, const u64* factors, i64 n, WideOutput out) {
  for_each(n, out, [&](i64 i) { return a[i] * factors[i]; });
}

void multiply_wide(WideView a, u64 factor, i64 n, WideOutput out) {
  for_each(n, out, [&](i64 i) { return a[i] * factor; });
}

void sum_wide(WideView a, i64 outer, i64 count, i64 inner, WideOutput out) {
  for (i64 o = 0; o < outer; ++o) {
    for (i64 i = 0; i < inner; ++i) {
      u128 sum = 0;
      for (i64 j = 0; j < count; ++j) sum += a[(o * count + j) * inner + i];
      out.set(o * inner + i, sum);
    }
  }
}

void wide_product(WideView a, Strides a_at, const u64* b, Strides b_at, i64 rows, i64 inner,
                  i64 columns, WideOutput out, Strides out_at) {
  for (i64 i = 0; i < rows; ++i) {
    const WideView row{a.low + i * a_at.row, a.high + i * a_at.row};
    for (i64 j = 0; j < columns; j += kTile) {
      const i64 width = std::min(kTile, columns - j);
      u128 sums[kTile] = {};
      const u64* first = b + j * b_at.column;
      if (width == kTile) {
        product_tile<kTile>(row, a_at.column, first, b_at, inner, sums);
      } else {
        for (i64 c = 0; c < width; ++c)
          product_tile<1>(row, a_at.column, first + c * b_at.column, b_at, inner, sums + c);
      }
      for (i64 c = 0; c < width; ++c) out.set(i * out_at.row + (j + c) * out_at.column, sums[c]);
    }
  }
}

}  // namespace privml::linear
