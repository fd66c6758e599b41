// SPDX-License-Identifier: Apache-2.0
// Arrays of shares with the number of elements; the array is empty if only costs are counted.
#pragma once

#include <span>

#include "base/buffer.h"
#include "base/types.h"

namespace privml::functions {

template <class T>
struct Shares {
  i64 count = 0;
  AlignedVector<T> values;

  T& operator[](i64 i) { return values[i]; }
  T operator[](i64 i) const { return values[i]; }
  operator std::span<const T>() const { return values; }
};
using RingShares = Shares<u64>;
using BitShares = Shares<u8>;

// One array after the other; part k of several equal ones.
template <class T>
Shares<T> joined(const Shares<T>& a, const Shares<T>& b) {
  Shares<T> out{a.count + b.count, a.values};
  out.values.insert(out.values.end(), b.values.begin(), b.values.end());
  return out;
}
template <class T>
Shares<T> part_of(const Shares<T>& joined, i64 n, i64 k) {
  Shares<T> out{n, {}};
  if (!joined.values.empty()) {
    out.values.assign(joined.values.begin() + k * n, joined.values.begin() + (k + 1) * n);
  }
  return out;
}

}  // namespace privml::functions
