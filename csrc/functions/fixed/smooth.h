// SPDX-License-Identifier: Apache-2.0
// Functions that approach straight lines away from zero: the common part of erf, GELU, SiLU,
// softplus, sigmoid and tanh.
//
// Functionality  x of the format `in`; y ~ f(x) in the format `out`.
// Method         one piecewise polynomial of x if its range is short; else one of min(|x|, T),
//                T being where the tail ends, put together by the sign. The cheaper form is taken.
// Leakage        none beyond length and formats. Assumption: correlated OT, correlation-robust
//                hash.
// Cost           piecewise.h; the second form two relu.h, and a multiplex.h or an extension more.
#pragma once

#include "functions/fixed/format.h"
#include "functions/fixed/series.h"
#include "ot/cost.h"
#include "ot/party.h"

namespace privml {

// With t = tail(|x|), which falls to 0:
enum class SmoothForm {
  line,    // max(x, 0) + sign * t
  odd,     // 1 - t, and f(-x) = -f(x)
  rising,  // 1 - t, and f(-x) = 1 - f(x)
};

struct Smooth {
  const char* name;
  Series tail;
  SmoothForm form;
  int sign;
  int largest_domain;  // the tail's, log2
};

// Additive shares in Z_{2^in.bits} and Z_{2^out.bits}. Throw InvalidArgument on other formats or
// lengths that differ. The clear function computes the same numbers, bit for bit.
void smooth(Party& party, const Smooth& f, std::span<const u64> x, FixedFormat in, FixedFormat out,
            std::span<u64> y);
void clear_smooth(const Smooth& f, std::span<const i64> x, FixedFormat in, FixedFormat out,
                  std::span<i64> y);
void cost_smooth(CostMeter& meter, i64 count, const Smooth& f, FixedFormat in, FixedFormat out);

}  // namespace privml
