// SPDX-License-Identifier: Apache-2.0
// Authenticated squares against dishonest parties, with products in one direction only.
//
// Functionality  shares of random a and a^2 mod 2^k (Supply::squares).
// Method         a = x + y, x of one party from OT (products.h) with a mask x^, y of the other with
//                a random mask y^: [a^2] = [x^2 + y^2 + 2 x y]; x^ * y comes from the same
//                transfers. Each party authenticates its own x, x^ (y, y^), and both a^2 and the
//                masked square q = x x^ + y y^ + 2 x^ y. For a public t the parties open p = t x -
//                x^ and
//                p' = t y - y^, each of its owner, and check t a^2 - q - p (x + 2 y) - p' y = 0 mod
//                2^(k+s). The first half of a batch takes x from party 0, the second from party 1.
// Soundness      as for triples (triple.h); privacy of x and y as that of a and b in products.h.
// Cost           each party sends, per square and on average, half the products of a triple, the
//                MACs of four words (two of them by the pool, for half of the squares), k+3s bits.
#pragma once

#include "spdz2k/preprocessing/products.h"

namespace privml::spdz2k {

inline constexpr i64 kSquareBatch = 1024;

// Throws SecurityAbort, for good, if the peer cheats.
template <class R>
void generate_squares(Authentication<R>& authentication, WordSpan<R> a, WordSpan<R> square);
template <class R>
void cost_squares(ot::CostMeter& meter, i64 n, SilentVoleMeter* voles = nullptr);

}  // namespace privml::spdz2k
