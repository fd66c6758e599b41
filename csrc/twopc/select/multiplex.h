// SPDX-License-Identifier: Apache-2.0
// A ring value or zero, by a shared bit.
//
// Functionality  out = bit ? value : 0; bits XOR-shared, values additive in Z_{2^width}, 1..64.
// Leakage        none beyond length and width. Assumption: correlated OT, correlation-robust hash.
// Source         SiRNN (Rathee et al., S&P 2021), appendix A, for a random bit first; then the
//                difference of the two bits is opened.
// Cost           2 correlations, 2 (width * length + 1) bits per bit; depth 2, of which the first
//                needs the values but not the bits.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

void multiplex(ot::Party& party, std::span<const u8> bits, std::span<const u64> values, int width,
               std::span<u64> out);
void cost_multiplex(ot::CostMeter& meter, i64 n, int width);

// Several values under one bit: bits[i] selects values[i * length + j], 0 <= j < length.
void multiplex_vectors(ot::Party& party, std::span<const u8> bits, std::span<const u64> values,
                       i64 length, int width, std::span<u64> out);
void cost_multiplex_vectors(ot::CostMeter& meter, i64 n, i64 length, int width);

}  // namespace privml::twopc
