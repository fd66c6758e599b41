// SPDX-License-Identifier: Apache-2.0
#include "functions/float/sign_and_zero.h"

#include "functions/float/rounding.h"

namespace privml {

SignAndZero sign_and_zero(Evaluator& evaluator, const RingShares& x, int bits) {
  const RingShares c = complement(evaluator, x, 0, bits);
  const Carries carries = evaluator.carries(c, bits - 1, 0, true);
  const BitShares nonnegative =
      evaluator.map_bits(x.count, [&](i64 i) { return (c[i] >> (bits - 1)) ^ carries.all[i]; });
  return {evaluator.negated(nonnegative), evaluator.and_bits(nonnegative, carries.low_ones)};
}

}  // namespace privml
