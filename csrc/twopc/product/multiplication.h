// SPDX-License-Identifier: Apache-2.0
// Elementwise products of mixed widths.
//
// Functionality  x in m bits, y in n bits, each unsigned or two's complement; out = x * y mod
//                2^ell for max(m, n) <= ell <= m + n, as additive shares.
// Method         shares are multiplied over the integers; a wrap bit of x (of y) is needed only
//                where m < ell (n < ell), so uniform rings need none. Signed numbers are offset by
//                2^(m-1) first and the offset is taken out of the product.
//                If a most significant bit is publicly known, so is the wrap but for one AND;
//                where |x| < 2^(m-2) is known, an offset of 2^(m-2) makes
//                it so, for ell < m + n.
// Leakage        none beyond lengths and widths. Assumption: correlated OT, correlation-robust
//                hash.
// Cost           one wrap.h per operand narrower than ell, one multiplex.h for each of them in ell
//                - m (ell - n) bits, and both cross terms; with an owned factor one cross term and
//                one transfer, and no AND. Beyond comparisons depth 1 + cross_terms.h's number of
//                pieces: an AND and what a multiplexer prepares travel with the first choices, what
//                it opens with the last stream.
// Source         SiRNN (Rathee et al., S&P 2021), section IV-C, Algorithm 3; section IV-E.
#pragma once

#include "twopc/product/cross_terms.h"

namespace privml::twopc {

struct FactorFormat {
  int bits = 64;
  bool is_signed = true;
  bool nonnegative = false;  // the most significant bit is known to be 0: its wrap costs one AND
  bool negative = false;     // it is known to be 1: the same
  bool bounded = false;      // signed, and known to lie within 2^(bits-2): its wrap costs one AND
};

// Both operands shared, x in Z_{2^x.bits} and y in Z_{2^y.bits}.
// Throws InvalidArgument on widths outside the range above or lengths that differ.
void multiply(ot::Party& party, std::span<const u64> x, FactorFormat x_format,
              std::span<const u64> y, FactorFormat y_format, int ell, std::span<u64> out);
void cost_multiply(ot::CostMeter& meter, i64 count, FactorFormat x_format, FactorFormat y_format,
                   int ell);

// x shared, y known to party `owner` (the other party passes an empty span); max(m, n) <= ell <= m
// + n.
void multiply_owned(ot::Party& party, int owner, std::span<const u64> x, FactorFormat x_format,
                    std::span<const u64> y, KnownFormat y_format, int ell, std::span<u64> out);
void cost_multiply_owned(ot::CostMeter& meter, int owner, i64 count, FactorFormat x_format,
                         KnownFormat y_format, int ell);

}  // namespace privml::twopc
