// SPDX-License-Identifier: Apache-2.0
// Angles as fractions of a turn: x / (2 pi) modulo 1 is a product with a public number in a ring
// that holds the fraction alone.
#pragma once

#include "fixmath/format.h"

namespace privml {

inline constexpr int kAngleGuard = 4;  // bits below the last place: a turn is 2 pi units

struct Turn {
  int bits;    // of the fraction
  u64 factor;  // 2^(bits - in.scale) / (2 pi)
};
// As many bits as keep the angle right to 2^-kAngleGuard units of the output.
Turn turn_of(FixedFormat in, FixedFormat out);

}  // namespace privml
