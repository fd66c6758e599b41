// SPDX-License-Identifier: Apache-2.0
// The signed number behind shares: int(x) = x0 + x1 - 2^bits * MW(x) over the integers.
//
// Functionality  x in Z_{2^bits} with -bound <= int(x) < bound, 1 <= bound <= 2^(bits-1); shares
//                of MW(x) in {0, 1, 2} in Z_{2^width}, 1 <= width <= 64. For other x the result is
//                wrong: the bound is the caller's promise.
// Method         with D = 2^bits - 2 bound + 1, x0' = x0 - bound mod 2^bits: MW = [x0 >= bound] +
//                [floor((2^bits - 1 - x0') / D) < floor(x1 / D)], numbers of at most K =
//                floor((2^bits - 1) / D). Up to K = 3 (bound < 3/8 of the ring) the comparison is a
//                sum of K products of bits that the parties know, K = 1 for a quarter; else it is
//                one of bitlength(K) bits.
// Leakage        none beyond length, widths and bound. Assumption: correlated OT,
//                correlation-robust hash.
// Cost           K products of private_product.h, depth 1; or a comparison of bitlength(K) bits and
//                a conversion.
// Source         Guo et al., "Real-number functions", Theorem 1 and Algorithm 1, with the widths
//                corrected so that powers of two and the full ring come out right.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"
#include "twopc/product/private_product.h"

namespace privml::twopc {

void signed_wrap(ot::Party& party, std::span<const u64> x, int bits, u64 bound, int width,
                 std::span<u64> out);
void cost_signed_wrap(ot::CostMeter& meter, i64 n, int bits, u64 bound, int width);

// How it is computed: `products` of bits, or a comparison of `compare_bits` bits if that is 0.
struct SignedWrapPlan {
  u64 divisor = 1;
  int products = 0;
  int compare_bits = 0;
};
// Throws InvalidArgument unless 1 <= bits <= 64 and 1 <= bound <= 2^(bits-1).
SignedWrapPlan plan_signed_wrap(int bits, u64 bound);

// The form by products in two halves, so that other messages share its exchange; plan.products > 0.
void write_signed_wrap(ot::Party& party, const SignedWrapPlan& plan, std::span<const u64> x,
                       int bits, u64 bound, int width, PrivateProduct& state);
void read_signed_wrap(ot::Party& party, const SignedWrapPlan& plan, std::span<const u64> x,
                      int bits, u64 bound, PrivateProduct& state, std::span<u64> out);

}  // namespace privml::twopc
