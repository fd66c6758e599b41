// SPDX-License-Identifier: Apache-2.0
// Opening of wide words in the sacrifices of the preprocessing, and the check of their MACs.
//
// Functionality  values are opened mod 2^(k+2s) with all their bits, whose upper s their owners
//                have randomised; residuals m^j - alpha^j * opened then sum to zero.
// Soundness      what a party sends is fixed before chi is tossed, so with an error d, d != 0 mod
//                2^(k+s), sum chi_i d_i is divisible by 2^(k+s+j) with probability 2^-(j+1) at
//                most, and the key must then be guessed mod 2^(s-j): together (s + 1) 2^-s.
//                (Opening only the low bits and a masked sum of the upper ones after chi, as the
//                online check of SPDZ2k does, would let a peer repair an even multiple of an error
//                in the top bit.)
// Cost           a wide word or s bits per value; the check a coin toss, 32 bytes, a wide word and
//                16 bytes, three exchanges.
#pragma once

#include "ot/cost.h"
#include "spdz2k/shares/session.h"
#include "spdz2k/shares/wide.h"

namespace privml::spdz2k {

// Adds the peer's words to this party's.
template <class R>
void open_wide(Session<R>& session, std::span<Wide<R>> words);
// Reads the peer's words after writing this party's; `theirs` may have another length.
template <class R>
void exchange_wide(Session<R>& session, std::span<const Wide<R>> mine, std::span<Wide<R>> theirs);
// Opens values that are zero mod 2^(k+s) if all is well: their upper s bits are sent, the lower
// ones taken to cancel. The check catches values for which they do not.
template <class R>
void open_zeros(Session<R>& session, std::span<Wide<R>> words);

// Throws SecurityAbort, for good, if residuals do not sum to zero; `what` names the batch.
template <class R>
void check_residuals(Session<R>& session, std::span<const Wide<R>> residuals, const char* what);

template <class R>
i64 wide_bytes(i64 n);
template <class R>
void cost_open_zeros(ot::CostMeter& meter, i64 n);
template <class R>
void cost_check_residuals(ot::CostMeter& meter);

}  // namespace privml::spdz2k
