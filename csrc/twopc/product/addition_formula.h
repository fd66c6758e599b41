// SPDX-License-Identifier: Apache-2.0
// Functions with an addition formula: sums of products of what each party computes alone.
//
// Functionality  F(u + b) = sum over the terms of f_i(u) (c_i + g_i(b)), with public functions f_i,
//                g_i and public constants c_i. x in Z_{2^bits}; out = F(x) in Z_{2^(ring_bits -
//                dropped)}, the low `dropped` bits of F rounded away.
// Method         one party tabulates, the other one's share is h 2^place_bits + b. The first takes
//                u = its own share + h 2^place_bits for each h into a table of f_i(u), of which the
//                other receives shares of entry h by a 1-of-2^m transfer, m = bits - place_bits;
//                products of its g_i(b) with the first one's shares are correlated transfers. There
//                is no comparison: sums that wrap around are entries of the table. Each party
//                tabulates in one half of the instances.
// Domain         the party that tabulates cannot tell x = u + b from u + b - 2^bits: either F has
//                the period 2^bits, or x < 2^bits - 2^place_bits is the caller's promise and u of
//                the last 2^place_bits words stands for u - 2^bits.
//                If `by_ciphertexts`, the products are those of slot_product.h, with the table's
//                words at the first one as they are, and not their shares in the ring: the wrap of
//                both words is that one of them is in the upper half, and what the second one's
//                adds is a correlated transfer of its factor by that bit.
// Accuracy       f_i(u) and g_i(b) are rounded, so the result may depend on the shares by what the
//                roundings amount to; dropped bits add at most dropped_error() units.
// Leakage        none beyond length and widths. Assumption: correlated OT, correlation-robust hash.
// Cost           per instance m correlations and 2^m value_bits bits for each group of terms that
//                fit 64 bits; the wrap of each term (signed_wrap.h); one correlation and up to
//                ring_bits - dropped bits per bit of each factor. Depth 4. By ciphertexts
//                slot_product.h and one correlation with ring_bits - value_bits bits in place of
//                the wrap and the factor's bits.
// Source         the form of functions of Guo et al., "Real-number functions", section 2.2, with a
//                table of high digits in place of their three values of MW.
#pragma once

#include <functional>
#include <vector>

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

struct AdditionTerm {
  // entries[j] = f((share + j 2^place_bits) mod 2^bits) for all 2^m places j; words above
  // value_bits are ignored. Must not branch or take addresses by the share. `instance` is its place
  // in x, for functions that differ between instances.
  std::function<void(i64 instance, u64 share, std::span<u64> entries)> values;
  // g(b) of factor_bits low bits, unsigned or in two's complement; unset if there is none.
  std::function<u64(i64 instance, u64 b)> factor;
  int factor_bits = 0;
  bool factor_signed = false;
  bool negative = false;  // c - g in place of c + g
  u64 constant = 0;
};

struct AdditionFormula {
  int bits = 0;
  int place_bits = 0;
  int value_bits = 0;        // |f| < 2^(value_bits - 2)
  bool nonnegative = false;  // or 0 <= f < 2^(value_bits - 1)
  int ring_bits = 64;        // up to 128
  int dropped = 0;           // ring_bits - dropped <= 64
  std::vector<AdditionTerm> terms = {};
  // For one term of values that are not negative, whose c + g or c - g is not negative either.
  bool by_ciphertexts = false;
  int table_bits() const { return bits - place_bits; }
};

// Throws InvalidArgument on other widths, tables of more than 8 bits, lengths that differ, or
// numbers that no ciphertexts hold.
void addition_formula(ot::Party& party, const AdditionFormula& formula, std::span<const u64> x,
                      std::span<u64> out);
void cost_addition_formula(ot::CostMeter& meter, i64 n, const AdditionFormula& formula);

// What the work on ciphertexts is worth, in bits on the wire, beside kComputingBits of a
// correlation.
i64 work_of(const AdditionFormula& formula, i64 n);
// Whether ciphertexts hold the formula's numbers.
bool fits_ciphertexts(const AdditionFormula& formula);
// The most by which dropped bits change the result, in units of 2^dropped.
double dropped_error(const AdditionFormula& formula);

}  // namespace privml::twopc
