// SPDX-License-Identifier: Apache-2.0
#include "secfloat/sign_and_zero.h"

#include "secfloat/rounding.h"

namespace privml {

SignAndZero sign_and_zero(Steps& steps, const RingShares& x, int bits) {
  const RingShares c = complement(steps, x, 0, bits);
  const Carries carries = steps.carries(c, bits - 1, 0, true);
  const BitShares nonnegative =
      steps.map_bits(x.count, [&](i64 i) { return (c[i] >> (bits - 1)) ^ carries.all[i]; });
  return {steps.negated(nonnegative), steps.and_bits(nonnegative, carries.low_ones)};
}

}  // namespace privml
