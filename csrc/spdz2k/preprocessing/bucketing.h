// SPDX-License-Identifier: Apache-2.0
// How large buckets must be so that random assignment makes correlations safe, and the assignment.
//
// Leaky triples   A peer that cheats in a triple learns one of its bits and is caught with
//                 probability 1/2. Triples go into `buckets` buckets of `size` at random
//                 after all cheating; each bucket gives one triple, of which the peer knows
//                 something only if it cheated in all of the bucket's. Cheating in the same bucket
//                 again may cost nothing more, so t tries that fall into c buckets pass with at
//                 most 2^-c. With n buckets of B and t = B + u tries:
//                   Pr[one full, none caught] <= n C(t, B) / C(nB, B) * 1/2 * E[2^-c'],
//                 c' the other buckets that u random places touch. E[2^-c'] = E[C(BX, u)] /
//                 C(B(n-1), u) <= E[(X / (n-1))^u] <= 2^-u exp(u^2 / (n-1)) for X binomial (n-1,
//                 1/2), by E[X^u] <= E[X]^u exp(u^2 / (2 E[X])) (Ahle, 2022).
// Numbers         A private number of `heads` is compared with `size - 1` others, which are
//                 assigned at random from `others` = heads * (size - 1) + opened; the last `opened`
//                 are shown. A comparison holds if both are right, and can only hold otherwise if
//                 both are wrong. With h wrong heads exactly their h (size - 1) places must get the
//                 wrong others: probability 1 / C(others, h (size - 1)), largest for h = 1 or h =
//                 heads.
// Source          bucketing: Nielsen, Nordholt, Orlandi, Burra, "TinyOT" (Crypto 2012), Wang,
//                 Ranellucci, Katz (CCS 2017); numbers: Escudero, Ghosh, Keller, Rachuri, Scholl,
//                 "edaBits" (Crypto 2020).
#pragma once

#include <vector>

#include "crypto/block.h"

namespace privml::spdz2k {

// Log2 of the binomial coefficient n over k, 0 <= k <= n.
double log2_binomial(i64 n, i64 k);

inline constexpr i64 kFewestBuckets = 1024;

// -log2 of the bound for leaky triples; `buckets` >= kFewestBuckets, size >= 2.
double leaky_bucket_security(i64 buckets, int size);
// The smallest size with at least `bits` of security.
int leaky_bucket_size(i64 buckets, int bits);

// -log2 of the bound for private numbers; size >= 2.
double number_bucket_security(i64 heads, int size, i64 opened);
struct NumberBuckets {
  int size = 2;
  i64 opened = 1;
  i64 others(i64 heads) const { return heads * (size - 1) + opened; }
};
// The fewest others with at least `bits` of security.
NumberBuckets number_buckets(i64 heads, int bits);

// A permutation of 0 .. n-1 from a public seed. Every one has the probability 1 / n! up to a factor
// (1 + n / 2^64)^n.
std::vector<u32> random_permutation(crypto::Block seed, i64 n);

}  // namespace privml::spdz2k
