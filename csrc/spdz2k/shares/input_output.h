// SPDX-License-Identifier: Apache-2.0
// Private inputs and revealed results: the only ways for values to enter and to leave a session.
//
// Functionality  input: shares of x mod 2^k, which `owner` knows; the other party passes an empty
//                span.
//                reveal: out = x mod 2^bits at the parties that learn it; the others pass an empty
//                span. Everything opened before is checked first, then x is opened and checked
//                before the function returns. For one party alone x is hidden by one of its input
//                masks.
// Leakage        input: none, the owner sends x minus a random mask that only it knows. reveal: the
//                value, to the parties it is revealed to. A dishonest peer may see it and then
//                abort.
// Cost           input: n words of k bits from the owner, one message; n input masks. reveal:
//                packed_bytes(n, bits) from each party; two checks (the first if something is
//                pending); n input masks if one party learns it.
#pragma once

#include "spdz2k/shares/side.h"

namespace privml::spdz2k {

// Throws InvalidArgument if the lengths differ.
template <class R>
void input(Session<R>& session, int owner, std::span<const u64> x, WordSpan<R> out);
template <class R>
void cost_input(CostMeter& meter, int owner, i64 n);

inline constexpr int kBothParties = -1;

// `to` is 0, 1 or kBothParties. Throws InvalidArgument on other values, widths outside 1..k and
// lengths that differ, SecurityAbort if a check fails.
template <class R>
void reveal(Side<R> side, WordView<R> x, int bits, int to, std::span<u64> out);
template <class R>
void reveal_bits(Side<R> side, BitView<R> x, int to, std::span<u8> out);

}  // namespace privml::spdz2k
