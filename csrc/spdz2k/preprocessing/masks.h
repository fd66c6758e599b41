// SPDX-License-Identifier: Apache-2.0
// Authenticated random words: input masks, which one party knows, and values that neither party
// knows.
//
// Cost           for each word k+s - 4d bits per digit d < s/4 of the MAC key, from the party that
//                chose it; authentication.h for the check.
#pragma once

#include "spdz2k/preprocessing/authentication.h"

namespace privml::spdz2k {

// Words made together.
inline constexpr i64 kMaskBatch = 8192;

// `owner` gets the lowest k bits in `clear`; the other party passes an empty span.
template <class R>
void generate_masks(Authentication<R>& authentication, int owner, WordSpan<R> r,
                    std::span<u64> clear);
template <class R>
void cost_masks(ot::CostMeter& meter, int owner, i64 n, SilentVoleMeter* voles = nullptr);

// The sum of a word of each party, uniform mod 2^(k+s).
template <class R>
void generate_randoms(Authentication<R>& authentication, WordSpan<R> r);
template <class R>
void cost_randoms(ot::CostMeter& meter, i64 n, SilentVoleMeter* voles = nullptr);

}  // namespace privml::spdz2k
