// SPDX-License-Identifier: Apache-2.0
// Functions that approach straight lines on both sides: erf, GELU, SiLU, softplus, sigmoid, tanh.
//
// Functionality  erf(x); gelu(x) = x Phi(x), exactly; gelu_tanh(x) = x (1 + tanh(sqrt(2 / pi) (x +
//                0.044715 x^3))) / 2; silu(x) = x / (1 + e^-x); softplus(x) = ln(1 + e^x);
//                sigmoid(x) = 1 / (1 + e^-x); tanh(x). x of the format `in`, y ~ f(x) of the format
//                `out`, each of 2..32 bits with a scale of 0..bits - 2; the result must fit the
//                output format.
// Method         one piecewise polynomial of x (piecewise.h) if its range is short; else one of
//                min(|x|, T), T being where the function meets its lines, put together by the sign:
//                gelu(x) = relu(x) - d(|x|), gelu_tanh, silu and softplus likewise; erf and tanh
//                are odd; sigmoid(-x) = 1 - sigmoid(x). The cheaper form is taken. The exponential
//                and the quotient of the source's Figure 4 would take about twice the bytes and
//                three times the depth, at twice the error.
// Error          below one unit in the last place; docs/fixed-point-math.md has what is measured.
// Leakage        none beyond length and formats. Assumption: correlated OT, correlation-robust
//                hash.
// Cost           piecewise.h and one truncate_reduce; the second form also two relu.h, and a
//                multiplex.h or an extension more.
// Source         after SiRNN (Rathee et al., S&P 2021), section V, whose recipe for sigmoid this
//                replaces by tables of polynomials.
#pragma once

#include "functions/fixed/function.h"

namespace privml::fixed {

enum class SmoothFunction { erf, gelu, gelu_tanh, silu, softplus, sigmoid, tanh };

// Additive shares in Z_{2^in.bits} and Z_{2^out.bits}. Throw InvalidArgument on other formats or
// lengths that differ. The clear function computes the same numbers, bit for bit.
functions::RingShares smooth(functions::Evaluator& evaluator, SmoothFunction f,
                             const functions::RingShares& x, FixedFormat in, FixedFormat out);
void clear_smooth(SmoothFunction f, std::span<const i64> x, FixedFormat in, FixedFormat out,
                  std::span<i64> y);

// The same with the signatures of functions that are not parts of a family.
template <SmoothFunction f>
functions::RingShares smooth(functions::Evaluator& evaluator, const functions::RingShares& x,
                             FixedFormat in, FixedFormat out) {
  return smooth(evaluator, f, x, in, out);
}
template <SmoothFunction f>
void clear_smooth(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y) {
  clear_smooth(f, x, in, out, y);
}
}  // namespace privml::fixed
