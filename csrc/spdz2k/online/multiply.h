// SPDX-License-Identifier: Apache-2.0
// Products of shared values.
//
// Functionality  multiply: out[i] = x[i] * y[i]; square: out[i] = x[i]^2; both mod 2^k. out may be
//                an input.
// Leakage        none: what is opened is masked by the triple.
// Cost           per product 2 words of k bits and one triple, per square 1 word and one square;
//                one exchange per kProducts products.
// Source         Beaver's triples (Crypto 1991) on SPDZ2k shares.
#pragma once

#include "spdz2k/shares/side.h"

namespace privml::spdz2k {

// Products that are made at once, so that memory stays bounded.
inline constexpr i64 kProducts = i64{1} << 17;

// Throws InvalidArgument if lengths differ.
template <class R>
void multiply(Side<R> side, WordView<R> x, WordView<R> y, WordSpan<R> out);

template <class R>
void square(Side<R> side, WordView<R> x, WordSpan<R> out);

}  // namespace privml::spdz2k
