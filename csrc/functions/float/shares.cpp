// SPDX-License-Identifier: Apache-2.0
#include "functions/float/shares.h"

namespace privml::floating {

FloatShares load_floats(const functions::Evaluator& evaluator, FloatView a, FloatFormat f,
                        i64 begin) {
  const i64 n = evaluator.n;
  FloatShares out{evaluator.bits(n), evaluator.bits(n), evaluator.ring(n), evaluator.ring(n)};
  evaluator.local(n, [&](i64 i) {
    out.zero[i] = a.zero[begin + i] & 1;
    out.sign[i] = a.sign[begin + i] & 1;
    out.exponent[i] = a.exponent[begin + i] & low_mask(f.exponent_bits());
    out.mantissa[i] = a.mantissa[begin + i] & low_mask(f.mantissa_bits());
  });
  return out;
}

void store_floats(const functions::Evaluator& evaluator, const FloatShares& a, FloatSpan out,
                  i64 begin) {
  evaluator.local(evaluator.n, [&](i64 i) {
    out.zero[begin + i] = a.zero[i];
    out.sign[begin + i] = a.sign[i];
    out.exponent[begin + i] = a.exponent[i];
    out.mantissa[begin + i] = a.mantissa[i];
  });
}

}  // namespace privml::floating
