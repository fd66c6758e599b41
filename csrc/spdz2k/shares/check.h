// SPDX-License-Identifier: Apache-2.0
// The MAC check of everything opened since the last one.
//
// Functionality  returns if every opened value is the shared one; otherwise the session ends with
//                SecurityAbort, which names the batch.
// Method         per group of openings mod 2^b: (1) a common seed makes s random subsets; (2) of
//                each subset l the parties open the sum of the upper parts of the shares, p_l =
//                sum_i upper(x_i) + r_l mod 2^s, under a random mask each; (3) a second common seed
//                makes weights psi_l; (4) z^j = sum_l psi_l (sum_i (m_i^j - alpha^j x~_i) + 2^b
//                (m_(r_l)^j - alpha^j p_l)) mod 2^(b+s), committed before it is shown; the two sum
//                to zero. x~_i is the sum of what the parties sent, not reduced. With up to s
//                openings each is a subset by itself, and (1) is skipped.
// Soundness      Let x~_i be wrong by d_i, not all 0 mod 2^b. In every subset the errors sum to 0
//                mod the least power of two above all their common ones with probability 1/2, so in
//                one of s the sum is not 0 mod 2^b except with probability 2^-s; no change of p_l,
//                which is multiplied by 2^b, corrects that, and p_l is fixed before psi. Then z
//                demands alpha times a sum of which t or more extra factors of two come with
//                probability 2^-t: the peer has guessed s - t bits of the key. Together below (s +
//                10) 2^-s; shared bits: s - 1 key bits, s 2^-(s-1) + 2^-s. A failure ends the
//                session. NOT enough, though published: one combination with coefficients from
//                Z_{2^s} in place of (1) to (3). A peer that opens a value wrong by 2^(b-1) and
//                meets an even coefficient c subtracts c/2 from its p, and passes half of the time.
// Cost           per group of n: min(n, s) random values, as many words of s bits, and one word; 64
//                bytes per seed, 48 for the commitment; 5 exchanges, 4 if all groups are small.
//                Nothing if nothing is pending.
// Source         SPDZ2k (Crypto 2018), Fig. 3, for masks and the last step.
#pragma once

#include "spdz2k/shares/cost.h"
#include "spdz2k/shares/session.h"

namespace privml::spdz2k {

template <class R>
void check(Session<R>& session);
template <class R>
void cost_check(CostMeter& meter);

}  // namespace privml::spdz2k
