// SPDX-License-Identifier: Apache-2.0
// Opening shared values to one party or to both.
//
// Functionality  out = the shared value at the parties that learn it, signed (two's complement)
//                words for ring elements. A party that learns nothing passes an empty span.
// Leakage        the value, to whom it is opened: a share is the value minus the receiver's own
//                share, so the message tells the receiver nothing more. Bits above the width never
//                leave.
// Cost           packed_bytes(n, bits) from each party that sends, in chunks.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

inline constexpr int kBothParties = -1;

// `to` is 0, 1 or kBothParties. Throws InvalidArgument on other values, widths outside 1..64 and
// lengths that differ.
void open_ring(ot::Party& party, std::span<const u64> x, int bits, int to, std::span<u64> out);
void cost_open_ring(ot::CostMeter& meter, i64 n, int bits, int to);

void open_bits(ot::Party& party, std::span<const u8> x, int to, std::span<u8> out);
void cost_open_bits(ot::CostMeter& meter, i64 n, int to);

}  // namespace privml::twopc
