// SPDX-License-Identifier: Apache-2.0
// From a small ring to a larger one.
//
// Functionality  x in Z_{2^from}; out = the same number in Z_{2^to}, 1 <= from <= to <= 64, read as
//                unsigned (zero_extend) or two's complement (sign_extend). extend_nonnegative is
//                for values known to lie below 2^(from-1), where both agree, and much cheaper.
// Leakage        none beyond length and widths. Assumption: correlated OT, correlation-robust hash.
// Source         SiRNN (Rathee et al., S&P 2021), section IV, Algorithm 1 and "MSB-to-wrap".
// Cost           the wrap bit of `from` bits (wrap.h) and its conversion to to - from bits.
#pragma once

#include <span>

#include "base/types.h"
#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

void zero_extend(ot::Party& party, std::span<const u64> x, int from, int to, std::span<u64> out);
void sign_extend(ot::Party& party, std::span<const u64> x, int from, int to, std::span<u64> out);
void cost_extend(ot::CostMeter& meter, i64 n, int from, int to);

void extend_nonnegative(ot::Party& party, std::span<const u64> x, int from, int to,
                        std::span<u64> out);
void cost_extend_nonnegative(ot::CostMeter& meter, i64 n, int from, int to);

// The shares in a smaller ring are the low bits of those in a larger one. out may be x.
inline void keep_low_bits(std::span<const u64> x, int bits, std::span<u64> out) {
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = x[i] & low_mask(bits);
}

}  // namespace privml::twopc
