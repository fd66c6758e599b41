// SPDX-License-Identifier: Apache-2.0
// Real functions in integer arithmetic, exact to about 2^-54: what tables of piecewise polynomials
// are fitted to. The constants are in tables/series.inc, written by scripts/make_tables.py.
#pragma once

#include "base/types.h"

namespace privml::fixed {

enum class Series {
  erf_tail,        // 1 - erf(t), 0 <= t < 8
  gelu_tail,       // t * Phi(-t), 0 <= t < 8
  silu_tail,       // t / (1 + e^t), 0 <= t < 32
  softplus_tail,   // ln(1 + e^-t), 0 <= t < 32
  log,             // ln(1 + t), 0 <= t < 1
  rsqrt,           // 1 / sqrt(1 + t), 0 <= t < 1
  sqrt,            // sqrt(1 + t), 0 <= t < 1
  sigmoid_tail,    // 1 / (1 + e^t), 0 <= t < 32
  sine,            // sin(2 pi t), 0 <= t < 1
  exponential,     // e^-t, 0 <= t < 32
  gelu_tanh_tail,  // t / (1 + e^(sqrt(8 / pi) (t + 0.044715 t^3))), 0 <= t < 8
  tanh_tail,       // 1 - tanh(t), 0 <= t < 16: twice the sigmoid's at 2t
};

inline constexpr int kPlaceScale = 48;  // of arguments
inline constexpr int kValueScale = 56;  // of values

// Zero beyond the domain, where all functions that have a tail are below 2^-41.
i64 series_value(Series series, u64 t);

// log2 of the error of degree 1..6 on an interval of length 1, in sixteenths; length h changes it
// by 16 (degree + 1) log2 h.
int series_error(Series series, int degree);

inline constexpr int kLargestDegree = 6;

// Places in [0, 1] (scale 48) at which a polynomial of `degree` is fitted, degree + 1 of them.
u64 fitting_place(int degree, int place);

// Coefficients of powers 0..degree, of scale 56, from the values at those places, of scale 56.
void fit_polynomial(int degree, const i64* values, i64* coefficients);

}  // namespace privml::fixed
