// SPDX-License-Identifier: Apache-2.0
// Sine and cosine.
//
// Functionality  out ~ sin(x), cos(x), x in radians. Formats of up to 32 bits on both sides.
// Method         x / (2 pi) modulo 1 is a product with a public number in a ring that holds the
//                fraction of a full rotation only, so that reduction costs nothing; its leading
//                bits are the argument of a piecewise polynomial of the full rotation
//                (piecewise.h). cos(x) = sin(x + pi / 2).
// Accuracy       below one unit in the last place, for any x of the input format, if in.bits +
//                out.scale <= 60; see docs/fixed-point-math.md.
// Leakage        none beyond length and formats. Assumption: correlated OT, correlation-robust
//                hash.
// Cost           a sign extension to out.scale + in.bits + 4 bits, a truncate_reduce of them to
//                out.scale + 4, piecewise.h and one truncate_reduce.
// Source         the identity behind Guo et al., "Real-number functions", Algorithm 6, that angles
//                add up modulo 2 pi; there sines and cosines of the shares are multiplied, and
//                the result depends on the shares.
#pragma once

#include "functions/fixed/function.h"

namespace privml::fixed {

functions::RingShares sin(functions::Evaluator& evaluator, const functions::RingShares& x,
                          FixedFormat in, FixedFormat out);
void clear_sin(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y);

functions::RingShares cos(functions::Evaluator& evaluator, const functions::RingShares& x,
                          FixedFormat in, FixedFormat out);
void clear_cos(std::span<const i64> x, FixedFormat in, FixedFormat out, std::span<i64> y);

// Angles as fractions of a full rotation: x / (2 pi) modulo 1 is the product of x and a public
// number, in a ring that holds the fraction only.
inline constexpr int kAngleGuard = 4;  // bits below the last place: a full rotation is 2 pi units

struct AngleReduction {
  int bits;    // of the fraction
  u64 factor;  // 2^(bits - in.scale) / (2 pi)
};
// Enough bits for an angle exact to 2^-kAngleGuard units of the output.
AngleReduction angle_reduction(FixedFormat in, FixedFormat out);

}  // namespace privml::fixed
