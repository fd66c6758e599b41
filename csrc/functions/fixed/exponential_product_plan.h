// SPDX-License-Identifier: Apache-2.0
// The plan of e^-a as a product: tables, widths and the constant added before rounding.
#pragma once

#include <optional>

#include "functions/fixed/exponential_range.h"
#include "twopc/product/addition_formula.h"

namespace privml {

struct ExponentialProduct {
  FixedFormat in, out;
  ExponentialRange range;
  AdditionFormula formula;
  int shift;   // bits of the formula's result behind the last place
  u64 offset;  // added before they are dropped
  // Of the formula's result; the product with half a bit to spare.
  int result_bits() const { return formula.ring_bits - formula.dropped; }
};

void cost_exponential_product(CostMeter& meter, const ExponentialProduct& plan, i64 n);

// The cheapest by bits on the wire; none if 64 bits do not suffice. `exact`: the result does not
// depend on the shares.
std::optional<ExponentialProduct> plan_exponential_product(FixedFormat in, FixedFormat out,
                                                           bool exact);

}  // namespace privml
