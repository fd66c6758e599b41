// SPDX-License-Identifier: Apache-2.0
// Products of a value known to one party with a value known to the other.
//
// Functionality  one party holds x, the other y; they get additive shares of x * y mod 2^ell,
//                elementwise or as a matrix product.
// Method         the bits of one operand are choices of correlated OTs whose correlations are the
//                other operand: bit i needs the product modulo 2^(ell - i) only, so its messages
//                have ell - i bits. In a matrix product one choice bit carries a whole row of the
//                other operand.
//                Products of many pairs of numbers, both terms of each or of own words, are
//                slot_product.h's where a party may make ciphertexts and these cost less.
// Leakage        none beyond shapes and widths. Assumption: correlated OT, correlation-robust
//                hash; with ciphertexts those of slot_product.h.
// Cost           as cross_term_bits() says, in elementwise products per piece of 2^17 choices:
//                choices one way, the stream back with the next piece's choices alongside; depth 1
//                + number of pieces. By ciphertexts slot_product.h, once or twice.
// Source         Gilboa (Crypto 1999); SiRNN (Rathee et al., S&P 2021), appendix D, Algorithm 4.
#pragma once

#include "base/matrix_batch.h"
#include "ot/cost.h"
#include "ot/party.h"
#include "twopc/product/companion.h"

namespace privml::twopc {

// How the words of an operand known to one party are read.
using KnownFormat = NumberFormat;

// Which operand's bits are the choices; `automatic` takes the side with fewer bytes (see
// choose_side).
enum class ChoiceSide { automatic, left, right };

// Product of a rows x inner matrix (left) and an inner x columns matrix (right), both row-major.
struct MatrixShape {
  i64 rows = 0;
  i64 inner = 0;
  i64 columns = 0;
};

// Bits that one correlation is taken to cost when sides are compared; fixed, so that both parties
// and the cost functions decide alike whatever provider makes the correlations.
inline constexpr i64 kCorrelationBits = 32;

// Bits on the wire of `choices` operands of `choice_bits` each, whose bits carry `elements`
// products in all.
i64 cross_term_bits(i64 choices, i64 elements, int choice_bits, int ell);

// The cheaper side of a matrix product, never `automatic`.
ChoiceSide choose_side(const MatrixShape& shape, KnownFormat left, KnownFormat right, int ell);

// A companion: for products of at most kChunk elements times the chunk factor, whose correlations
// are reserved with those of the companion.

// Elementwise. `mine` is x at party `left_holder` and y at the other party; out has the same
// length. Throws InvalidArgument on widths outside 1..64 or lengths that differ.
void cross_term(ot::Party& party, int left_holder, std::span<const u64> mine, KnownFormat left,
                KnownFormat right, int ell, ChoiceSide side, std::span<u64> out,
                const Companion& companion = {});
void cost_cross_term(ot::CostMeter& meter, int left_holder, i64 count, KnownFormat left,
                     KnownFormat right, int ell, ChoiceSide side, CompanionFlights flights = {});

// Both cross terms of a product of shared values, x_0 * y_1 + x_1 * y_0, in one exchange of choices
// and one of streams: each party passes its own words of x (left) and y (right).
void cross_terms(ot::Party& party, std::span<const u64> x, std::span<const u64> y, KnownFormat left,
                 KnownFormat right, int ell, std::span<u64> out, const Companion& companion = {});
void cost_cross_terms(ot::CostMeter& meter, i64 count, KnownFormat left, KnownFormat right, int ell,
                      CompanionFlights flights = {});

// x_0[k] * x_1[k] of unsigned words of `bits` bits, one cross term for each, in the same two
// flights; each party sends streams for one half.
void own_cross_terms(ot::Party& party, std::span<const u64> x, int bits, int ell,
                     std::span<u64> out, const Companion& companion = {});
void cost_own_cross_terms(ot::CostMeter& meter, i64 count, int bits, int ell,
                          CompanionFlights flights = {});

// Matrix product. `mine` is the left matrix at party `left_holder` and the right matrix at the
// other party; out is rows x columns.
void matrix_cross_term(ot::Party& party, int left_holder, std::span<const u64> mine,
                       const MatrixShape& shape, KnownFormat left, KnownFormat right, int ell,
                       ChoiceSide side, std::span<u64> out);
void cost_matrix_cross_term(ot::CostMeter& meter, int left_holder, const MatrixShape& shape,
                            KnownFormat left, KnownFormat right, int ell, ChoiceSide side);

// Both cross terms of a product of shared matrices: each party passes its own words of x and y.
void matrix_cross_terms(ot::Party& party, std::span<const u64> x, std::span<const u64> y,
                        const MatrixShape& shape, KnownFormat left, KnownFormat right, int ell,
                        ChoiceSide side, std::span<u64> out);
void cost_matrix_cross_terms(ot::CostMeter& meter, const MatrixShape& shape, KnownFormat left,
                             KnownFormat right, int ell, ChoiceSide side);

}  // namespace privml::twopc
