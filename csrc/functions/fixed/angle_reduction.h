// SPDX-License-Identifier: Apache-2.0
// Angles as fractions of a full rotation: x / (2 pi) modulo 1 is the product of x and a public
// number, in a ring that holds the fraction only.
#pragma once

#include "functions/fixed/format.h"

namespace privml {

inline constexpr int kAngleGuard = 4;  // bits below the last place: a full rotation is 2 pi units

struct AngleReduction {
  int bits;    // of the fraction
  u64 factor;  // 2^(bits - in.scale) / (2 pi)
};
// Enough bits for an angle exact to 2^-kAngleGuard units of the output.
AngleReduction angle_reduction(FixedFormat in, FixedFormat out);

}  // namespace privml
