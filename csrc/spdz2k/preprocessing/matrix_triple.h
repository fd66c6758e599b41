// SPDX-License-Identifier: Apache-2.0
// Authenticated triples of matrices against dishonest parties: each factor is masked once, however
// many products it takes part in.
//
// Functionality  shares of random A (rows x inner), B (inner x columns) and C = A B mod 2^k.
// Method         The parties' parts: A = A^0 + A^1 and so on; B has one column more, the mask b^,
//                and C one more, c^ = A b^.
//                (1) A^i has k random bits per entry, which number the holes of seed trees
//                    (seed_trees.h); a tree serves the whole line of B^j that its entry of A
//                    meets, so that a product costs k/4 words in place of 2k + s.
//                (2) B is authenticated with its products by the peer's pool (authentication.h);
//                    then a common seed makes weights rho, and every entry of A^i grows by
//                    <rho, pool^i>. The products of that come from the authentication, for the
//                    very B that was authenticated.
//                (3) A and C are authenticated. For public weights t in Z_{2^s}, tossed then, the
//                    parties open p = B t - b^ and check C t - c^ - A p = 0 mod 2^(k+s)
//                    (sacrifice.h).
// Soundness      with E = C - A B of what was authenticated, (3) tests E t = e^ in every row; if an
//                entry of E is not 0 mod 2^k, one of its 2^s weights passes at most: 2^-s, besides
//                the MACs. Zero divisors do no harm, for the test is mod 2^(k+s): an entry 2^v u, u
//                odd and v < k, determines its weight mod 2^(k+s-v), more than s bits.
// Privacy of B   p is uniform by the honest party's b^, whose k+2s bits are random, and the verdict
//                is a function of p, of what the peer chose and, if its trees were wrong, of A.
// Privacy of A   Wrong trees and corrections make C wrong by any function of A^i's bits that the
//                peer has fixed before rho was tossed; the verdict is a function f of A^i and of
//                constants that the peer may choose after rho. A guess g at the pool in (2) was
//                fixed before rho, too. For a character w != 0 of all entries of A^i mod 2^k,
//                E_rho |E_pool[g w(<rho, pool>)]|^2 <= 2^-|pool|, since w(<rho, c - c'>) is zero on
//                average over rho unless the pools c and c' are equal; and the squares of f's
//                characters (expanded by those of the constants first) sum to 1 at most. Hence A^i
//                mod 2^k with the verdict is within 2^(-|pool|/2-1) of uniform, all entries and
//                triples of a batch together. What more a failed check shows: products.h.
//                Guesses at the pool after a rho, in the checks of later lines and batches, shift
//                all six bits of a digit equally and are weighted by factors tossed later still:
//                that they fit a given character has probability 2^(-5|pool|/6) about.
// Assumption     seed_trees.h, authentication.h.
// Cost           each party sends, in bits: per product sum_{d<k/4} (k+s-4d); per entry of A k
//                correlated OTs, 65 k + 128 k and a MAC; per entry of B and b^ a MAC and (k+2s)
//                |pool|/6; per entry of C and c^ a MAC; k+2s per line of B; s per row of C. A MAC
//                is sum_{d<s/4} (k+2s-4d). For k = 64: 196 bytes per product, 324 per MAC, 480 by
//                the pool; for k = 32: 50, 82, 120.
// Source         matrix triples and their sacrifice by a random combination of columns: Mohassel
//                and Zhang, "SecureML" (S&P 2017), section IV; Chen, Kim, Razenshteyn, Rotaru,
//                Song, Wagh, "Maliciously secure matrix multiplication" (Asiacrypt 2020), for
//                fields; transfers, pool and ring as in products.h.
#pragma once

#include "spdz2k/preprocessing/authentication.h"

namespace privml::spdz2k {

// The trees of an entry of A^i: digits of 4 bits.
template <class R>
inline constexpr TreeShape kFactorShape{R::k / 4, 4};

// Triples of a shape that are made together, so that memory stays bounded.
i64 matrices_at_once(const MatrixShape& shape);

// n triples one after the other, each row by row. Throws SecurityAbort, for good, if the peer
// cheats; InvalidArgument if lengths do not fit the shape.
template <class R>
void generate_matrix_triples(Authentication<R>& authentication, const MatrixShape& shape, i64 n,
                             WordSpan<R> a, WordSpan<R> b, WordSpan<R> c);
template <class R>
void cost_matrix_triples(ot::CostMeter& meter, const MatrixShape& shape, i64 n,
                         SilentVoleMeter* voles = nullptr);

}  // namespace privml::spdz2k
