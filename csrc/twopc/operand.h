// SPDX-License-Identifier: Apache-2.0
// What a bilinear protocol must know about an operand.
#pragma once

#include "base/types.h"

namespace privml {

inline constexpr int kShared = -1;

// An operand of a product. owner == kShared: additive shares in Z_{2^bits}; owner 0 or 1: that
// party knows the values, in `bits` bits, unsigned or two's complement, and the other party passes
// an empty span.
struct Operand {
  int owner = kShared;
  int bits = 64;
  bool is_signed = true;
};

}  // namespace privml
