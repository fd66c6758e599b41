// SPDX-License-Identifier: Apache-2.0
// Multiplication triples of shared bits.
//
// Functionality  random x, y and z = x * y mod 2 as [.]_2; neither party knows x or y.
// Method         leaky triples, then buckets, in [.]_2 throughout. y are hashed authenticated bits
//                (authenticated_bits.h). x^j are choice bits of the malicious correlated OT; party
//                i sends for each the correlations (alpha^i, v^i, m^i) with (v, m) its share and
//                MAC share of y, so that the parties get shares of x * alpha, x * y and x * (alpha
//                y): MACs of x, and z with its MAC. Then random buckets of B leaky triples
//                become one triple each: the differences of the other y to the first, d_b, are
//                opened, and x = sum x_b, y = y_1, z = sum z_b + d_b x_b. At the end the MACs of
//                all x and z and of the openings are checked.
// Soundness      x^j is fixed by the choice and (v, m) enters z with its MAC: a cheater that shifts
//                v by an odd number must shift m by alpha times it. So wrong z or MACs fail the
//                check (bit_check.h) unless they are multiplied by bits x^j that the cheater
//                guessed to be 0.
// Leakage        guesses: a cheater learns t of the other's x_b with probability 2^-t, which
// reveals
//                x only if a whole bucket was guessed. Bucket sizes keep that below 2^-sigma
//                (bucketing.h).
// Assumption     malicious correlated OT, correlation robust hash.
// Cost           a triple of a batch with buckets of B: each way 2B correlations, 4B words of s
//                bits and B - 1 bits; per batch two checks of bits and one of openings.
// Source         leaky products and buckets: Nielsen et al., "TinyOT" (Crypto 2012), Wang,
//                Ranellucci, Katz (CCS 2017), Katz, Ranellucci, Rosulek, Wang (Crypto 2018), there
//                with exclusive-or MACs; MACs multiplied along as in Frederiksen, Keller, Orsini,
//                Scholl (Asiacrypt 2015).
#pragma once

#include "ot/party.h"
#include "spdz2k/shares/cost.h"
#include "spdz2k/shares/session.h"

namespace privml::spdz2k {

// Triples of one batch: at least kFewestBuckets, at most this.
inline constexpr i64 kMostBitTriples = i64{1} << 19;

// B for a batch of n.
template <class R>
int bit_triple_bucket(i64 n);

// A batch of x.size() triples, kFewestBuckets .. kMostBitTriples of them. Throws SecurityAbort
// if a check fails.
template <class R>
void generate_bit_triples(Session<R>& session, ot::Party& party, BitSpan<R> x, BitSpan<R> y,
                          BitSpan<R> z);
template <class R>
void cost_generate_bit_triples(CostMeter& meter, i64 n);

}  // namespace privml::spdz2k
