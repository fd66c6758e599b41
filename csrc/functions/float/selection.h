// SPDX-License-Identifier: Apache-2.0
// A floating-point number or +0, by a shared bit.
//
// Functionality  out = bit ? a : +0 of the format; bits XOR-shared. Also for differences of shares,
//                part by part, of which one is to be added to another number.
// Leakage        none beyond length and format. Assumption: correlated OT, correlation-robust hash.
// Cost           one selection each (random_selection.h) of the mantissa, the exponent, and the two
//                bits, in the same two flights.
// Source         SecFloat (Rathee et al., S&P 2022), section V, "ReLU": one multiplexer.
#pragma once

#include "functions/float/operation.h"

namespace privml::floating {

Operation<FloatShares, functions::BitShares, FloatShares> float_select(FloatFormat f);

}  // namespace privml::floating
