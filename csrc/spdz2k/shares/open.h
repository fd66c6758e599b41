// SPDX-License-Identifier: Apache-2.0
// Opens shared values to both parties inside a protocol, with a deferred MAC check.
//
// Functionality  out[i] = x[i] mod 2^bits at both parties. What was opened may be wrong by the
//                peer's choice until check() has passed: nothing that depends on it may leave the
//                session before (input_output.h).
// Leakage        x mod 2^bits; the upper bits of the shares stay (they are not uniform).
// Cost           packed_bytes(n, bits) from each party, one exchange; a check before it if more
//                than kMostPending openings would be pending.
// Source         SPDZ2k (Crypto 2018), Figs. 2 and 3; Open_{k'} of "New primitives", section II.
#pragma once

#include "spdz2k/shares/cost.h"
#include "spdz2k/shares/session.h"

namespace privml::spdz2k {

// 1 <= bits <= k. Throws InvalidArgument on other widths and lengths that differ.
template <class R>
void open(Session<R>& session, WordView<R> x, int bits, std::span<u64> out);
template <class R>
void cost_open(CostMeter& meter, i64 n, int bits);

// Shared bits, 0 or 1 each.
template <class R>
void open_bits(Session<R>& session, BitView<R> x, std::span<u8> out);
template <class R>
void cost_open_bits(CostMeter& meter, i64 n);

// The same in two steps, for protocols that compute what they open: the shares go into the slots of
// the first call, which the second opens.
template <class R>
WordSpan<R> begin_opening(Session<R>& session, int bits, i64 n);
template <class R>
void finish_opening(Session<R>& session, WordSpan<R> slots, int bits, std::span<u64> out);
template <class R>
BitSpan<R> begin_opening_bits(Session<R>& session, i64 n);
template <class R>
void finish_opening_bits(Session<R>& session, BitSpan<R> slots, std::span<u8> out);

}  // namespace privml::spdz2k
