// SPDX-License-Identifier: Apache-2.0
// Quotients and square roots of floating-point numbers.
//
// Functionality  divide        a / b of the format, as clear_float_divide():
//                              x / 0 is infinity,
//                              0 / 0 is zero
//                sqrt          of |a|, as clear_float_sqrt(); zeros keep their signs
//                Numbers of up to 27 mantissa bits. out may be an operand.
// Method         quotient.h: a table of chords gives 1 / m2 (1 / sqrt m) to about 2g bits, products
//                with it the result and its relative error, both cut to what counts, and their
//                product the result within one unit below. The remainder's sign decides about that
//                unit. Up to 10 mantissa bits of a quotient one table of 2^(q+3) / m2.
// Leakage        none beyond length and format. Assumption: correlated OT, correlation-robust hash.
// Cost           a lookup of q / 4 bits, four products, five truncations of about q / 2 bits, two
//                comparisons of q + 1 bits, rounding.h's check; the root one comparison less.
// Source         SecFloat (Rathee et al., S&P 2022), Figures 6 and 17, with another table and
//                Goldschmidt's iteration in place of Newton's.
#pragma once

#include "functions/float/operation.h"
#include "functions/float/rounding.h"

namespace privml::floating {

FloatBinary float_divide(FloatFormat f);
FloatUnary float_sqrt(FloatFormat f);

// On an Evaluator.
FloatShares divide_floats(functions::Evaluator& evaluator, const FloatShares& a,
                          const FloatShares& b, FloatFormat f);
FloatShares sqrt_floats(functions::Evaluator& evaluator, const FloatShares& a, FloatFormat f);

// The chord's value, s fraction bits in Z_{2^(s+1)}, below 2^s: `table` has a chord per index of
// index_bits bits, `index` (in Z_{2^index_bits}) selects it, `rest` are the bits below in
// Z_{2^(s+1+offset)}.
functions::RingShares chord_value(functions::Evaluator& evaluator, std::span<const u64> table,
                                  const functions::RingShares& index, int index_bits,
                                  const functions::RingShares& rest, int q);

// floor(a (2^F + epsilon) / 2^drop) in Z_{2^out_bits}: a in Z_{2^a_bits} below 2^(a_bits - 1),
// epsilon signed in Z_{2^epsilon_bits} within a quarter of that ring.
struct RefineShape {
  int a_bits, epsilon_bits, fraction, drop, out_bits;
};
functions::RingShares refine(functions::Evaluator& evaluator, const functions::RingShares& a,
                             const functions::RingShares& epsilon, const RefineShape& shape);

}  // namespace privml::floating
