// SPDX-License-Identifier: Apache-2.0
// Linear functions of a shared number whose coefficients are XOR-shared words, as tables give them.
//
// Functionality  out = 2^constant_shift * constant + factor * u mod 2^ell: constant and factor are
//                XOR-shared words of up to 64 bits, unsigned or two's complement; u and out are
//                additive in Z_{2^ell}. A word of no bits (an empty span) stands for zero; bits of
//                words above their format's do not matter.
// Method         for bits a ^ b = a + b - 2ab. The product of a bit of factor = a ^ b with u =
//                u_0 + u_1 is a u_0 + b u_1 + b (1 - 2a) u_0 + a (1 - 2b) u_1, of which the last
//                two are correlated transfers; for a constant's bit it is one transfer, for which
//                each party sends in one half of the batch. Bit i needs ell - i bits.
//                So a table's entry is never made additive first, and needs no wrap bit.
// Leakage        none beyond length and widths. Assumption: correlated OT, correlation-robust hash.
// Cost           2 correlations and 2 (ell - i) bits per bit i of the factor; one and ell -
//                constant_shift - i - 1 bits per bit i of the constant; depth 2.
// Source         CrypTFlow2 (Rathee et al., CCS 2020), appendix A.5, bit by bit.
#pragma once

#include "ot/cost.h"
#include "ot/party.h"

namespace privml::twopc {

struct WordFormat {
  int bits = 0;
  bool is_signed = false;
};

struct LinearShape {
  WordFormat constant;
  int constant_shift = 0;
  WordFormat factor;
  int ell = 64;
};

// Throws InvalidArgument on words that do not fit ell or spans that do not fit the shape; u may be
// empty if there is no factor.
void linear_words(ot::Party& party, const LinearShape& shape, std::span<const u64> constant,
                  std::span<const u64> factor, std::span<const u64> u, std::span<u64> out);
void cost_linear_words(ot::CostMeter& meter, i64 count, const LinearShape& shape);

// factor * u alone, and a word alone.
void multiply_word(ot::Party& party, std::span<const u64> factor, WordFormat format,
                   std::span<const u64> u, int ell, std::span<u64> out);
void cost_multiply_word(ot::CostMeter& meter, i64 count, WordFormat format, int ell);
void word_to_ring(ot::Party& party, std::span<const u64> word, WordFormat format, int ell,
                  std::span<u64> out);
void cost_word_to_ring(ot::CostMeter& meter, i64 count, WordFormat format, int ell);

}  // namespace privml::twopc
