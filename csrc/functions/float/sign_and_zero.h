// SPDX-License-Identifier: Apache-2.0
// The sign of a shared number and whether it is zero: the order of two numbers from their
// difference.
//
// Functionality  x in Z_{2^bits}, bits >= 2, in two's complement: XOR shares of [x < 0] and
//                [x = 0].
// Method         one comparison with equality on the complement's shares gives the top bit, and
//                whether all other bits are zero (the paper's LT&EQ).
// Leakage        none beyond length and width. Assumption: correlated OT, correlation-robust hash.
// Cost           a comparison of bits - 1 bits with equality, and an AND.
// Source         SecFloat (Rathee et al., S&P 2022), appendix G.
#pragma once

#include "functions/float/evaluator.h"

namespace privml {

struct SignAndZero {
  BitShares negative, zero;
};
SignAndZero sign_and_zero(Evaluator& evaluator, const RingShares& x, int bits);

}  // namespace privml
