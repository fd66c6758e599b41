// SPDX-License-Identifier: Apache-2.0
// The MAC check of everything opened since the last one.
//
// Functionality  returns if every opened value is the shared one; otherwise the session ends with
//                SecurityAbort, which names the batch.
// Method         chi_i in Z_{2^s} from a common seed tossed after the openings; per modulus 2^b one
//                random mask r: the parties open p = sum chi_i * upper(x_i) + r mod 2^s, then z^j =
//                sum chi_i * (m_i^j - alpha^j x~_i) + 2^b (m_r^j - alpha^j p) mod 2^(b+s),
//                committed before it is shown; the two sum to zero. x~_i is the sum of what the
//                parties sent, not reduced; the mask hides the upper bits of the shares.
// Soundness      2^-(s - log2(s+1)) per attempt; an attempt ends the session. Shared bits: s - 1 in
//                place of s.
// Cost           64 + 32 + 16 bytes, and s/8 + the word's per group; 4 exchanges; one random value
//                per group. Nothing where nothing is pending.
// Source         SPDZ2k (Crypto 2018), Fig. 3.
#pragma once

#include "spdz2k/cost.h"
#include "spdz2k/session.h"

namespace privml::spdz2k {

template <class R>
void check(Session<R>& session);
template <class R>
void cost_check(CostMeter& meter);

}  // namespace privml::spdz2k
