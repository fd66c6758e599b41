// SPDX-License-Identifier: Apache-2.0
// Checks the MACs of many shared bits under the session's key.
//
// Functionality  returns if every given sharing has value * alpha = MAC mod 2^s, up to errors that
//                the dishonest party knows and could correct in its own shares. Otherwise the
//                session ends with SecurityAbort.
// Method         the conversion check of Fig. 2 on sharings that already are [.]_2: s
//                times a random sum of the sharings, coefficients 0 or 1 from a seed tossed now,
//                plus a random authenticated word, is opened in full; the MAC differences
//                are committed to, opened, and must cancel.
// Soundness      let e_l be the MAC error of sharing l, 2^v the lowest power of two in any of them
//                beyond the cheater's right guesses. The j-th check passes only if the parity of
//                the (e_l >> v) with coefficient 1 is the one that the cheater assumed: 1/2 each,
//                2^-s in all. One word with coefficients of s bits would not do: errors of 2^(s-1)
//                pass it with probability 1/2. The words are authenticated as numbers, so bits
//                whose MACs were made with another key part fail as well: their error is its
//                difference times a sum of the other party's bits, unknown in each of the s checks.
// Leakage        a dishonest party whose errors depend on bits of the other learns them if it
//                guesses all of them right, and ends the session otherwise: t bits with probability
//                2^-t.
// Cost           64 + 32 + 16 bytes and twice s words of s bits from each party, four exchanges; s
//                random values.
// Source         Damgard et al., "New primitives for actively-secure MPC over rings" (S&P 2019),
//                Fig. 2.
#pragma once

#include <initializer_list>

#include "spdz2k/shares/cost.h"
#include "spdz2k/shares/session.h"

namespace privml::spdz2k {

// `what` names the batch in SecurityAbort.
template <class R>
void check_bit_macs(Session<R>& session, std::initializer_list<BitView<R>> sharings,
                    const char* what);
template <class R>
void cost_check_bit_macs(CostMeter& meter);

}  // namespace privml::spdz2k
