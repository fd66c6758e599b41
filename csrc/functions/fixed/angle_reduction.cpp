// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/angle_reduction.h"

#include <algorithm>

namespace privml {
namespace {

constexpr u64 kInverseTwoPi[] = {
#include "functions/fixed/tables/inverse_two_pi.inc"
};

}  // namespace

AngleReduction angle_reduction(FixedFormat in, FixedFormat out) {
  const int bits = std::clamp(in.bits + out.scale + kAngleGuard, in.scale + 1, 64);
  const int fraction = bits - in.scale;
  if (fraction == 64) return {bits, kInverseTwoPi[0]};
  const u128 half = u128{1} << (63 - fraction);
  return {bits, static_cast<u64>((u128{kInverseTwoPi[0]} + half) >> (64 - fraction))};
}

}  // namespace privml
