// SPDX-License-Identifier: Apache-2.0
// Arithmetic mod 2^128 on arrays of numbers whose low and high words stand in separate arrays.
//
// Leakage        none: time and memory access depend on sizes alone.
#pragma once

#include "base/types.h"

namespace privml::linear {

struct WideView {
  const u64 *low, *high;
  u128 operator[](i64 i) const { return u128{high[i]} << 64 | low[i]; }
};

struct WideOutput {
  u64 *low, *high;
  void set(i64 i, u128 value) const {
    low[i] = static_cast<u64>(value);
    high[i] = static_cast<u64>(value >> 64);
  }
};

// out[i] = a[i] + b[i], a[i] - b[i], -a[i], a[i] * factors[i], a[i] * factor; factors are numbers
// from 0 to 2^64 - 1. out may be an operand.
void add_wide(WideView a, WideView b, i64 n, WideOutput out);
void subtract_wide(WideView a, WideView b, i64 n, WideOutput out);
void negate_wide(WideView a, i64 n, WideOutput out);
void multiply_wide(WideView a, const u64* factors, i64 n, WideOutput out);
void multiply_wide(WideView a, u64 factor, i64 n, WideOutput out);

// out[o, i] = the sum over j of a[o, j, i], of shape [outer, count, inner].
void sum_wide(WideView a, i64 outer, i64 count, i64 inner, WideOutput out);

// Element (i, j) stands at i * row + j * column.
struct Strides {
  i64 row, column;
};

// out(i, j) = the sum over k of a(i, k) * b(k, j), of rows x inner and inner x columns.
void wide_product(WideView a, Strides a_at, const u64* b, Strides b_at, i64 rows, i64 inner,
                  i64 columns, WideOutput out, Strides out_at);

}  // namespace privml::linear
