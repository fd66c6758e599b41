// SPDX-License-Identifier: Apache-2.0
// Authenticated multiplication triples against dishonest parties.
//
// Functionality  shares of random a, b and c = a*b mod 2^k (Supply::triples).
// Method         cross products a^i * b^j from OT with a mask a^ beside a (products.h); a, b, c,
//                a^, c^ are authenticated as words of k+2s bits, a^ and c^ with random upper bits;
//                for a public t in Z_{2^s} the parties open p = t a - a^ and check t c - c^ - p b =
//                0 mod 2^(k+s) (sacrifice.h); then everything is reduced mod 2^(k+s).
// Soundness      c = a*b + e with e != 0 mod 2^k passes for one t at most: 2^-s, besides the MACs.
// Cost           each party sends, per triple, bits:
//                  products    sum_{h<k} (k+s-h) + sum_{h<k+s} (k+s-h) + (k+s) |C|/6
//                  MACs        5 sum_{d<s/4} (k+2s-4d) + 2 (k+2s) |C|/6
//                  sacrifice   k+3s
//                and 2k+s correlated OTs in each direction; |C| = kPoolShape.bits(). For k = 64
//                that is 4736 bytes, for k = 32 1200, besides the OTs, against (k+2s)(9s+4k) bits,
//                19968 and 4992 bytes, of the published protocol.
// Source         SPDZ2k (Crypto 2018), Figs. 7 and 8, changed as said here and in products.h.
#pragma once

#include "spdz2k/preprocessing/products.h"

namespace privml::spdz2k {

// Triples made together; a batch takes ten exchanges.
inline constexpr i64 kTripleBatch = 1024;

// Throws SecurityAbort, for good, if the peer cheats.
template <class R>
void generate_triples(Authentication<R>& authentication, WordSpan<R> a, WordSpan<R> b,
                      WordSpan<R> c);
template <class R>
void cost_triples(ot::CostMeter& meter, i64 n, SilentVoleMeter* voles = nullptr);

// Bits per triple from each party of the protocol as published, OTs included.
template <class R>
inline constexpr i64 kPublishedTripleBits = (R::k + 2 * R::s) * (9 * R::s + 4 * R::k);

}  // namespace privml::spdz2k
