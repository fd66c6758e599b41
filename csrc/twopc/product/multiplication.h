// SPDX-License-Identifier: Apache-2.0
// Elementwise products of mixed widths.
//
// Functionality  x in m bits, y in n bits, each unsigned or two's complement; out = x * y mod
//                2^ell for max(m, n) <= ell <= m + n, as additive shares.
// Method         shares are multiplied over the integers; a wrap bit of x (of y) is needed only
//                where m < ell (n < ell), so uniform rings need none. Signed numbers are offset by
//                2^(m-1) first and the offset is taken out of the product.
//                Where a most significant bit is known, publicly or as XOR shares, so is the wrap
//                but for one or two ANDs.
// Leakage        none beyond lengths and widths. Assumption: correlated OT, correlation-robust
//                hash.
// Cost           one wrap.h per operand narrower than ell, one multiplex.h for each of them in ell
//                - m (ell - n) bits, and both cross terms; with an owned factor one cross term and
//                one transfer.
// Source         SiRNN (Rathee et al., S&P 2021), section IV-C, Algorithm 3; section IV-E.
#pragma once

#include "twopc/product/cross_terms.h"

namespace privml {

struct FactorFormat {
  int bits = 64;
  bool is_signed = true;
  bool nonnegative = false;  // the most significant bit is known to be 0: its wrap costs one AND
  bool negative = false;     // it is known to be 1: the same
  bool shared_msb = false;   // its XOR shares are passed along: two ANDs
};

// XOR shares of most significant bits, one per number, of the operands that have `shared_msb`.
struct FactorMsbs {
  std::span<const u8> x;
  std::span<const u8> y;
};

// Both operands shared, x in Z_{2^x.bits} and y in Z_{2^y.bits}.
// Throws InvalidArgument on widths outside the range above or lengths that differ.
void multiply(Party& party, std::span<const u64> x, FactorFormat x_format, std::span<const u64> y,
              FactorFormat y_format, int ell, std::span<u64> out, FactorMsbs msbs = {});
void cost_multiply(CostMeter& meter, i64 count, FactorFormat x_format, FactorFormat y_format,
                   int ell);

// x shared, y known to party `owner` (the other party passes an empty span); max(m, n) <= ell <= m
// + n.
void multiply_owned(Party& party, int owner, std::span<const u64> x, FactorFormat x_format,
                    std::span<const u64> y, KnownFormat y_format, int ell, std::span<u64> out);
void cost_multiply_owned(CostMeter& meter, int owner, i64 count, FactorFormat x_format,
                         KnownFormat y_format, int ell);

}  // namespace privml
