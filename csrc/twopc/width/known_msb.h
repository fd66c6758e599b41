// SPDX-License-Identifier: Apache-2.0
// Extension of numbers whose most significant bit is known: publicly, or as XOR shares. Without it
// extension.h finds the carry of all bits by a comparison.
//
// Functionality  x in Z_{2^bits} with most significant bit `msb`, read as unsigned or in two's
//                complement. The extended number in Z_{2^to}.
//                For other x than msb says the results are wrong: it is the caller's promise.
// Method         carry of x0 + x1 from the top bits m0, m1 of the shares: with msb = 0 m0 | m1,
//                with msb = 1 m0 & m1. A number with msb = 1 is made one with msb = 0 by taking
//                2^(bits-1) off (unsigned) or by its complement -x-1 (signed). Shared: a table of
//                the four bits m_b, msb_b by one 1-of-4 transfer into the ring, or two private ANDs
//                and a conversion, whichever takes fewer bits.
// Leakage        none beyond length, widths and a public msb. Assumption: correlated OT,
//                correlation-robust hash.
// Cost           public: extension.h's for nonnegative numbers. Shared, in place
//                of their one correlation: two and 4 width + 2 bits, or three and width + 5.
// Source         SiRNN (Rathee et al., S&P 2021), section IV-E, "MSB-to-wrap".
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

// XOR-shared bits msb[i], one per number. 1 <= from <= to <= 64.
void extend_shared_msb(ot::Party& party, std::span<const u64> x, int from, std::span<const u8> msb,
                       bool is_signed, int to, std::span<u64> out);
void cost_extend_shared_msb(ot::CostMeter& meter, i64 n, int from, int to);

// What it is made of: the carry of x0 + x1 in Z_{2^width}, for one chunk of numbers of exactly
// `bits` bits.
void wrap_shared_msb_to_ring(ot::Party& party, std::span<const u64> x, int bits,
                             std::span<const u8> msb, int width, std::span<u64> out);
void cost_wrap_shared_msb_to_ring(ot::CostMeter& meter, i64 n, int width);

// Extension for a public bit, 0 or 1, of all numbers.
void extend_known_msb(ot::Party& party, std::span<const u64> x, int from, u8 msb, bool is_signed,
                      int to, std::span<u64> out);
void cost_extend_known_msb(ot::CostMeter& meter, i64 n, int from, int to);

}  // namespace privml::twopc
