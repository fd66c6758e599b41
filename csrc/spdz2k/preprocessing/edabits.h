// SPDX-License-Identifier: Apache-2.0
// Random numbers that neither party knows, shared both as numbers and bit by bit.
//
// Functionality  r[i] of `width` bits as shares mod 2^k, its bits as shared bits in planes: bit j
//                of number i is bits[j * n + i].
// Method         `summed`: the sum of a private number of each party (private_numbers.h); the bits
//                by an adder, carry by carry, whose last carry goes back to the ring if width <
//                k. `composed`: r = sum 2^j b_j of `width` random bits.
// Leakage        none. Everything opened is checked before the result is returned.
// Cost           summed: a private number of each party, width bit triples and a random bit (width
//                - 1 and none for width = k), width + 1 exchanges for the batch; composed: width
//                random bits, nothing sent.
// Source         Escudero, Ghosh, Keller, Rachuri, Scholl (Crypto 2020), Fig. 8; composed: "New
//                primitives", section IV.
#pragma once

#include "ot/party.h"
#include "spdz2k/shares/cost.h"
#include "spdz2k/shares/session.h"

namespace privml::spdz2k {

enum class EdabitMethod { composed, summed };

// 1 <= width <= k; for summed at most kMostNumbers (private_numbers.h) at once. Throws
// SecurityAbort if a check fails.
template <class R>
void generate_edabits(Session<R>& session, ot::Party& party, EdabitMethod method, int width,
                      WordSpan<R> r, BitSpan<R> bits);
template <class R>
void cost_generate_edabits(CostMeter& meter, EdabitMethod method, int width, i64 n);

}  // namespace privml::spdz2k
