// SPDX-License-Identifier: Apache-2.0
// Public numbers against numbers of which the bits are shared.
//
// Functionality  bit_less_than: out[i] = [c[i] < r[i]]; bit_greater_than: out[i] = [c[i] > r[i]],
//                for numbers without sign of `width` bits; bit j of r[i] is bits[j * n + i].
// Method         a tree over positions: a node knows whether its part of c is less (greater) and
//                whether it is equal; two nodes join by two products. Since c is public, a node of
//                two positions needs the product of the two bits of r alone.
// Leakage        none. Cost: one exchange per level of the tree, ceil(log2(width)) of them;
//                88 products for width 63 (118 if the first level took two per node as the others).
// Source         the carry tree of Damgard et al. (TCC 2006) as used by "New primitives", Fig. 6.
#pragma once

#include "spdz2k/shares/side.h"

namespace privml::spdz2k {

enum class Order { less, greater };

// One comparison of several numbers with the bits in `width` planes: at the end `result` is [c < r]
// or [c > r] and, with `with_equal`, `equal` is [c = r].
template <class R>
struct PublicComparison {
  std::span<const u64> c;
  BitView<R> bits;
  int width;
  Order order;
  BitSpan<R> result, equal{};
  bool with_equal = false;
};

// Several comparisons of as many numbers each, level by level together.
template <class R>
void compare_public(Side<R> side, std::span<const PublicComparison<R>> comparisons);

// 1 <= width <= k; throws InvalidArgument otherwise and if lengths differ.
template <class R>
void bit_less_than(Side<R> side, std::span<const u64> c, BitView<R> bits, int width,
                   BitSpan<R> out);
template <class R>
void bit_greater_than(Side<R> side, std::span<const u64> c, BitView<R> bits, int width,
                      BitSpan<R> out);

}  // namespace privml::spdz2k
