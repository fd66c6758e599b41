// SPDX-License-Identifier: Apache-2.0
// The range in which e^-a is not zero: common to all forms of the exponential that evaluate a part
// of the arguments.
//
// Functionality  a in Z_{2^bits}, 0 <= a <= 2^(bits-1); value = floor(sum / 2^shift) in
//                Z_{2^value_bits}, not negative, and 0 if zero <= a < end; out = a < end ? value :
//                0 in Z_{2^out_bits}. If no argument reaches `end` it is 0 and nothing is compared.
// Method         the shares' high parts add up to that of a or one less, which suffices if
//                values are zero well before `end`: their sum is compared, of bits - dropped bits.
// Leakage        none beyond length and widths. Assumption: correlated OT, correlation-robust hash.
// Cost           truncate_by_sign.h with a sign of bits - dropped bits, extend_nonnegative.
#pragma once

#include "functions/evaluator/evaluator.h"
#include "functions/fixed/format.h"

namespace privml::fixed {

struct ExponentialRange {
  int bits = 0;
  u64 end = 0;
  int dropped = 0;
  int value_bits = 0;
  int out_bits = 0;
  u64 threshold() const { return (end >> dropped) - (dropped > 0 ? 1 : 0); }
};

// Arguments may have up to 64 bits, if only the range is compared. Throws InvalidArgument on
// other formats.
void expect_wide_formats(FixedFormat in, FixedFormat out, const std::string& function);

// The fewest bits, at least `least` and at most in.bits, so that e^-a is below a quarter of a unit
// from 2^covered on, or with a table from 2^covered - 2^(covered - table_bits) on.
int covered_bits(FixedFormat in, FixedFormat out, int least, int table_bits = 0);
// Of arguments of `covered` bits, those below 2^covered, or `last` less. The values must be zero
// if e^-a is below 2^-zero_bits units.
ExponentialRange exponential_range(FixedFormat in, FixedFormat out, int covered, int zero_bits,
                                   u64 last = 0);

functions::RingShares within_range(functions::Evaluator& evaluator, const ExponentialRange& range,
                                   const functions::RingShares& a, const functions::RingShares& sum,
                                   int shift);

}  // namespace privml::fixed
