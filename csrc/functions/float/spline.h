// SPDX-License-Identifier: Apache-2.0
// Functions of a fixed-point number as polynomials on cells of equal length.
//
// Functionality  x in Z_{2^(index_bits + place_bits)}: its high bits choose a cell, its low bits w
//                are the place t = w / 2^place_bits in it. With c_i the cell's coefficients,
//                Horner's rule with every partial sum floored to an integer.
// Method         one lookup of all coefficients as XOR-shared words replaces SecFloat's GetC
//                (Figure 18): like GetC, it does not grow with the polynomial's degree in
//                correlations, and it needs no conversion of a one-hot vector. The first product
//                takes the words as they are (word_product.h), later ones are of numbers of known
//                sign.
// Leakage        none beyond length and shape. Assumption: correlated OT, correlation-robust hash.
// Cost           a split, a lookup; per power a truncation by place_bits, a product and a
//                conversion.
// Source         tables of scripts/make_float_tables.py; SecFloat (Rathee et al., S&P 2022), VI-A.
#pragma once

#include "functions/float/function_operations.h"

namespace privml::floating {

struct Spline {
  int index_bits;
  int place_bits;
  int degree;                 // 2 to 4
  const std::int32_t* table;  // [cell][power]
};

// x < 2^(index_bits + place_bits).
inline i64 clear_spline(const Spline& f, u64 x) {
  const std::int32_t* c = f.table + (x >> f.place_bits) * (f.degree + 1);
  const i64 w = static_cast<i64>(x & low_mask(f.place_bits));
  i64 sum = c[f.degree];
  for (int i = f.degree - 1; i >= 0; --i) sum = ((sum * w) >> f.place_bits) + c[i];
  return sum;
}

// In Z_{2^kSplineBits}: all values of a table's function lie in [0, 2^30). From x, or from shares
// of the cell in Z_{2^index_bits} (higher bits are ignored) and of w in Z_{2^spline_place_ring(f)}.
inline constexpr int kSplineBits = 31;
functions::RingShares spline(functions::Evaluator& evaluator, const Spline& f,
                             const functions::RingShares& x);
int spline_place_ring(const Spline& f);
functions::RingShares spline_at(functions::Evaluator& evaluator, const Spline& f,
                                const functions::RingShares& cell,
                                const functions::RingShares& place);

}  // namespace privml::floating
