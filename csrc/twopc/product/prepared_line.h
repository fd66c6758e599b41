// SPDX-License-Identifier: Apache-2.0
// linear_words of word_product.h in two flights of which each needs one of the operands: the
// number, or the words. So whichever is known earlier saves a flight, and others' messages can
// share both.
//
// Functionality  as word_product.h: out = 2^constant_shift * constant + factor * u mod 2^ell.
// Method         random_selection.h selects u by a random bit for each bit of the factor, and the
//                factor's bits are opened relative to these. A constant's bit a ^ b is a + b - 2ab,
//                a product of private_product.h in the words' flight.
// Leakage        none beyond length and widths: what is opened is masked by bits that are used
//                once. Assumption: correlated OT, correlation-robust hash.
// Cost           word_product.h's, the choices opened in place of imposed; depth 1 for either
//                flight.
// Source         those of the two.
#pragma once

#include <vector>

#include "twopc/product/private_product.h"
#include "twopc/product/word_product.h"
#include "twopc/select/random_selection.h"

namespace privml::twopc {

// What stands between the flights.
struct PreparedLine {
  LinearShape shape;
  i64 n = 0;
  std::vector<RandomSelection> factor;       // by bit
  std::vector<std::vector<u8>> differences;  // of the factor's bits, opened
  std::vector<PrivateProduct> constant;      // by bit
  std::vector<AlignedVector<u64>> products;
};

// Draws what the factor's bits are opened relative to. Then both flights, in either order; both
// parties write in each, for two numbers or more. Bits at and above the widths are ignored.
void draw_line(ot::Party& party, i64 n, const LinearShape& shape, PreparedLine& line);
void write_number(ot::Party& party, std::span<const u64> u, PreparedLine& line);
void read_number(ot::Party& party, PreparedLine& line);
void write_words(ot::Party& party, std::span<const u64> constant, std::span<const u64> factor,
                 PreparedLine& line);
void read_words(ot::Party& party, PreparedLine& line);
// Local, after both.
void line_value(const PreparedLine& line, std::span<const u64> constant, std::span<const u64> u,
                std::span<u64> out);

void cost_draw_line(ot::CostMeter& meter, i64 n, const LinearShape& shape);
Flight number_flight(i64 n, const LinearShape& shape);
Flight words_flight(i64 n, const LinearShape& shape);

}  // namespace privml::twopc
