// SPDX-License-Identifier: Apache-2.0
// Authenticated random bits from squares: one opening of k bits each.
//
// Functionality  shares of bits b, 0 or 1 mod 2^k, random and unknown to both (Supply::bits).
// Method         a square [u], [u^2] and a = 2u + 1, of which e = a^2 = 4 (u^2 + u) + 1 mod 2^(k+2)
//                is opened through w = u^2 + u mod 2^k. With a root c of e, a/c is 1 or -1 mod
//                2^(k+1), each equally likely given e, so b = (a/c + 1)/2 = u/c + (1/c + 1)/2 mod
//                2^k, which is linear in u with public coefficients. The root and its inverse come
//                from Newton's iteration y <- y (3 - e y^2)/2 with y = 1 at first: y -> 1/c, a
//                function of e alone.
// Cost           a square and packed_bytes(1, k) from each party per bit; the openings are checked
//                before the bits are returned.
// Source         "New primitives" (S&P 2019), Fig. 5, without its sharing mod 2^(k+2+s).
#pragma once

#include "spdz2k/preprocessing/square.h"
#include "spdz2k/shares/cost.h"

namespace privml::spdz2k {

// 1/c mod 2^(k+1) for a root c of 4w + 1 mod 2^(k+2); w < 2^k, k <= 64.
u128 inverse_root(u64 w, int k);

// Bits from as many squares. Opens in the session.
template <class R>
void bits_from_squares(Session<R>& session, WordView<R> u, WordView<R> square, WordSpan<R> bits);
template <class R>
void cost_bits_from_squares(CostMeter& meter, i64 n);

// With squares made for them, and everything opened so far checked before they are returned.
template <class R>
void generate_bits(Authentication<R>& authentication, WordSpan<R> bits);

}  // namespace privml::spdz2k
