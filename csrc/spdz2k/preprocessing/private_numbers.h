// SPDX-License-Identifier: Apache-2.0
// Random numbers of one party each, shared both as numbers and bit by bit.
//
// Functionality  party p gets r^p, a random number of `width` bits; the parties get shares of r^p
//                mod 2^k and of its bits, for p = 0 and 1 at once.
// Method         the bits are authenticated bits (authenticated_bits.h), the numbers input masks
//                that their owner corrects. That both agree is shown by comparison with other such
//                numbers of k bits, whose bits are choices of correlated OTs: after all that,
//                others are assigned at random to the n numbers and a few are opened. Of a number x
//                and an other y the sum s = x + y mod 2^k is opened with its MAC (all sums of the
//                batch are checked before anything is shown about them). Then the carries are c_b =
//                x_b ^ y_b ^ s_b, linear in the bits, and the owner proves c_0 = 0 and c_{b+1} =
//                c_b ^ (y_b ^ s_b)(x_b ^ s_b) for all b and pairs at once, under the correlated
//                OT's offset: 32 bytes, whatever the number of products.
// Soundness      a comparison holds if both are right, and otherwise only if both are wrong
//                (bucketing.h: below 2^-sigma); the proof adds 2^-125, the check of the sums its
//                own.
// Leakage        none: y is random mod 2^k, so s hides x; the proof is masked by 128 correlations.
// Assumption     malicious correlated OT.
// Cost           each number and other: k bits and an input mask; a number `width` authenticated
//                bits, an other k correlations; a pair k bits. A batch: 1 check, 3 coins, 32 bytes.
// Source         edaBits: Escudero, Ghosh, Keller, Rachuri, Scholl (Crypto 2020); comparison within
//                a proof: Baum, Braun, Munch-Hansen, Razet, Scholl, "Appenzeller to Brie" (CCS
//                2021); the proof: Yang, Sarkar, Weng, Wang, "QuickSilver" (CCS 2021).
#pragma once

#include "spdz2k/preprocessing/authenticated_bits.h"

namespace privml::spdz2k {

// Numbers of one batch.
inline constexpr i64 kMostNumbers = i64{1} << 12;

template <class R>
struct PrivateNumbers {
  std::array<WordShares<R>, 2> words;  // by owner
  std::array<BitShares<R>, 2> bits;    // planes: bit b of number i is [b * n + i]
};

// 1 <= width <= k, 1 <= n <= kMostNumbers. Throws SecurityAbort if a check fails.
template <class R>
PrivateNumbers<R> generate_private_numbers(Session<R>& session, ot::Party& party, int width, i64 n);
template <class R>
void cost_generate_private_numbers(CostMeter& meter, int width, i64 n);

}  // namespace privml::spdz2k
