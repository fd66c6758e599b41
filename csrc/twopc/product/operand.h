// SPDX-License-Identifier: Apache-2.0
// What a bilinear protocol must know about an operand.
#pragma once

#include "base/error.h"
#include "twopc/product/cross_terms.h"

namespace privml::twopc {

inline constexpr int kShared = -1;

// An operand of a product. owner == kShared: additive shares in Z_{2^bits}; owner 0 or 1: that
// party knows the values, in `bits` bits, unsigned or two's complement, and the other party passes
// an empty span.
struct Operand {
  int owner = kShared;
  int bits = 64;
  bool is_signed = true;
};

// Whether party `rank` passes words of the operand.
inline bool holds(int rank, Operand operand) {
  return operand.owner == kShared || operand.owner == rank;
}

// How those words are read. Shares need no sign: modulo 2^ell both readings agree.
inline KnownFormat held_format(Operand operand) {
  return {operand.bits, operand.owner != kShared && operand.is_signed};
}

// Throws InvalidArgument unless the operand fits a product in Z_{2^ell}.
inline void expect_fits(Operand operand, int ell) {
  expect(ell >= 1 && ell <= 64, "product: ell must lie in 1..64");
  expect(operand.owner >= kShared && operand.owner <= 1, "product: owner must be kShared, 0 or 1");
  expect(operand.owner == kShared ? operand.bits == ell : operand.bits >= 1 && operand.bits <= ell,
         "product: shared operands have ell bits, owned ones 1..ell");
}

}  // namespace privml::twopc
