// SPDX-License-Identifier: Apache-2.0
#include "fixmath/turn.h"

#include <algorithm>

namespace privml {
namespace {

constexpr u64 kTurnsOfOne[] = {
#include "fixmath/tables/turns_of_one.inc"
};

}  // namespace

Turn turn_of(FixedFormat in, FixedFormat out) {
  const int bits = std::clamp(in.bits + out.scale + kAngleGuard, in.scale + 1, 64);
  const int fraction = bits - in.scale;
  if (fraction == 64) return {bits, kTurnsOfOne[0]};
  const u128 half = u128{1} << (63 - fraction);
  return {bits, static_cast<u64>((u128{kTurnsOfOne[0]} + half) >> (64 - fraction))};
}

}  // namespace privml
