// SPDX-License-Identifier: Apache-2.0
// Private inputs.
//
// Functionality  shares of x mod 2^k, which `owner` knows; the other party passes an empty span.
// Leakage        none: the owner sends x minus a random mask that only it knows.
// Cost           n words of k bits from the owner, one message; n input masks.
#pragma once

#include "spdz2k/shares/cost.h"
#include "spdz2k/shares/session.h"

namespace privml::spdz2k {

// Throws InvalidArgument if the lengths differ.
template <class R>
void input(Session<R>& session, int owner, std::span<const u64> x, WordSpan<R> out);
template <class R>
void cost_input(CostMeter& meter, int owner, i64 n);

}  // namespace privml::spdz2k
