// SPDX-License-Identifier: Apache-2.0
// Shared bits as shared numbers.
//
// Functionality  out[i] = x[i], 0 or 1 mod 2^k.
// Leakage        none. Cost: one random bit and 1 opened bit each, one exchange.
// Source         "New primitives", Fig. 4.
#pragma once

#include "spdz2k/shares/cost.h"
#include "spdz2k/shares/session.h"

namespace privml::spdz2k {

// Throws InvalidArgument if lengths differ.
template <class R>
void bits_to_ring(Session<R>& session, BitView<R> x, WordSpan<R> out);
template <class R>
void cost_bits_to_ring(CostMeter& meter, i64 n);

}  // namespace privml::spdz2k
