// SPDX-License-Identifier: Apache-2.0
// Division by a power of two.
//
// Functionality  out[i] = floor(x[i] / 2^shift) mod 2^k plus the kind's error, for x mod 2^width as
//                a signed number if `is_signed`, else without sign. v is 0 or 1.
//   probable     + v, and with probability |x| / 2^width + or - 2^(width-shift) (SecureML's
//                trade-off): for values much smaller than the ring. Signs take care of themselves.
//   exact_low    the same without v.
//   exact_high   + v only.
//   exact        none.
//   bounded      + v only, for -2^(width-2) <= x < 2^(width-2), always signed: since the highest
//                bit of x + 2^(width-2) is 0, the highest bits of mask and difference say locally
//                whether the difference borrowed.
//   exact_bounded  none, for the same x.
//   v            is 1 with the probability of the fraction that is cut off.
// Method         c = r - x is opened for a random r = r_low + 2^shift r_high with shared bits:
//                floor(x / 2^shift) = r_high - floor(c / 2^shift) - v' + 2^(width-shift) u, where
//                v' = [c mod 2^shift > r_low] and u = [c > r].
// Leakage        none: c is uniform.
// Cost           width opened bits, edabits(shift) and edabits(width - shift); bounded: the second
//                of one bit less and a random bit; exact_low: a comparison of `shift` bits and a
//                bit as a number; exact_high: one of `width` bits; exact: both at once, two bits;
//                exact_bounded: bounded and exact_low.
// Source         "New primitives", Figs. 9 and 10, with c = r - x in place of x - r and comparisons
//                on the bits of r in place of a bit decomposition of x.
#pragma once

#include "spdz2k/shares/side.h"

namespace privml::spdz2k {

enum class TruncationKind { probable, exact_low, exact_high, exact, bounded, exact_bounded };

struct Truncation {
  int width;
  int shift;
  TruncationKind kind;
  bool is_signed = true;
};

// 1 <= shift < width <= k; bounded, exact_bounded: shift <= width - 2. Throws InvalidArgument
// otherwise and if lengths differ.
template <class R>
void truncate(Side<R> side, WordView<R> x, const Truncation& how, WordSpan<R> out);

}  // namespace privml::spdz2k
