// SPDX-License-Identifier: Apache-2.0
// Shares of products of one party's random factors and the other's words, from malicious correlated
// OT, with the pool that hides from a dishonest party what it may learn about triples and squares.
//
// Functionality  for each of n words b of the sender the receiver gets random a, a^, and the
//                parties get shares of a*b and a^*b mod 2^(k+s). Then the sender replaces b by b +
//                z.
// Method         a = bin(A) + <r, C>, a^ = bin(B) + <r^, C>, where A (k bits) and B (k+s bits) are
//                the choice bits of fresh random OTs, C the receiver's pool (authentication.h), the
//                same for all products of the session, and r, r^ public and random, tossed after
//                the transfers. Bit h of A and B carries b mod 2^(k+s-h) only, so a and a^ together
//                take a triangle of bits in place of tau words; b times C is one word per digit of
//                C. After the receiver has authenticated a and a^, the sender adds z = <rho, C'> of
//                its own pool to b, rho tossed then; a*z comes from the authentication, for the
//                very a that was authenticated.
// Privacy of a   against a sender that puts another b + e_h into each transfer. Let the sacrifice
//                open p = t a - a^ and pass iff t E - E^ = 0 with E = sum of weights times a_h e_h.
//                For a character (w_a, w_p) of (a mod 2^k, p) with w_a != 0 no bit of C has both
//                coefficients zero, whatever e, t and the frequency of the indicator are, so its
//                expected square over r, r^ is at most 2^-|C| times that of A's and B's part, which
//                sum to 1 (Parseval: bin is a bijection). Hence (a mod 2^k | p, verdict) is within
//                2^(-|C|/2-1) of uniform for all products of a batch together. A sacrifice that
//                fails shows more than that it does: its sums are alpha times the errors, from
//                which the pool may be found. So a pool hides only batches that come into use
//                when all of them have passed (preprocessing.h renews it for the next ones).
// Privacy of b   against a receiver that authenticates a + e: the sacrifice then tests e' * b for
//                its choice of e' (if e' = 2^(k+s-1) it learns the lowest bit of b), b without z.
//                The verdict and guesses at C' are independent of <rho, C'> up to 2^(-|C'|/2-1) by
//                the same argument, so b + z stays uniform. |C| = |C'| >= 2 (sigma + 2).
// Assumption     hash() correlation robust; those of authentication.h.
// Cost           sender to receiver, per product: sum over h < k and over h < k+s of k+s-h bits,
//                and k+s bits per digit of the pool; 2k+s correlated OTs.
// Source         random OT products: SPDZ2k (Crypto 2018), Fig. 7, whose tau = 4s + 2k bits per
//                product this keeps in number; powers of two as weights beside random ones: Doerner
//                et al., "Secure two-party threshold ECDSA" (S&P 2018), section VI.
#pragma once

#include "spdz2k/preprocessing/authentication.h"

namespace privml::spdz2k {

// One side's part of n products. `factor` and `mask` are the receiver's a and a^ (empty at the
// sender); `product` and `mask_product` shares mod 2^(k+s). Before weigh() the pool's part is
// missing.
template <class R>
struct Products {
  using Word = typename R::Word;
  WipedVector<Word> factor, mask, product, mask_product;
  Columns<Word> by_pool;
};

// Correlated OTs in this party's roles, for both parties' next calls.
template <class R>
void reserve_products(ot::Party& party, i64 as_sender, i64 as_receiver);
template <class R>
Products<R> send_products(Authentication<R>& authentication, std::span<const typename R::Word> b);
template <class R>
Products<R> receive_products(Authentication<R>& authentication, i64 n);
// Adds <r, C> and its products, with weights from a seed tossed after the transfers.
template <class R>
void weigh(const Authentication<R>& authentication, crypto::Block seed, Products<R>& products);

// What a party adds to its words b: z from its pool with weights from `seed`.
template <class R>
WipedVector<typename R::Word> pool_masks(const Authentication<R>& authentication,
                                         crypto::Block seed, i64 n);
// Adds factor[i] to `sign` * the weighted sum of the columns of element `first` + i: shares mod
// 2^(k+s) of the products of authenticated words and those z. The key's side has sign 1, the
// vector's side -1.
template <class R>
void add_masked_products(const Columns<Wide<R>>& columns, i64 first, crypto::Block seed, int sign,
                         std::span<typename R::Word> out);

// Messages from the sender, besides the OTs.
template <class R>
i64 product_bytes(i64 n);
template <class R>
constexpr i64 product_transfers(i64 n) {
  return n * (2 * R::k + R::s);
}

}  // namespace privml::spdz2k
