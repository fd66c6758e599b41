// SPDX-License-Identifier: Apache-2.0
// The reciprocal of a number between 1 and 2.
//
// Functionality  u in Z_{2^fraction} means v = 1 + u / 2^fraction; out ~ 2^scale (1 / v - 1/2)
//                in Z_{2^out_bits}, at least 0 and below 2^(scale - 1).
// Method         the top bits of u choose a line (constant and slope, minimax on the segment),
//                whose entries stay exclusive-or shared; the low bits of u are multiplied by the
//                slope. Above 18 fraction bits of the output, one step of Goldschmidt's iteration
//                on a line of half the precision. Few bits of u are looked up as a whole.
// Leakage        none beyond length and formats. Assumption: correlated OT, correlation-robust
//                hash.
// Source         SiRNN (Rathee et al., S&P 2021), Figure 5; the line: Ito, Takagi, Yajima (IEEE
//                Transactions on Computers 46(4), 1997).
#pragma once

#include <vector>

#include "functions/evaluator/evaluator.h"
#include "functions/fixed/line_lookup.h"

namespace privml::fixed {

struct UnitReciprocalShape {
  int fraction;  // bits of u, 0..31
  int scale;     // of the output, 4..31
  int out_bits;  // scale..64
};

// Lines, or the results themselves if segment_bits = fraction.
struct UnitReciprocal {
  UnitReciprocalShape shape;
  int line_scale;    // of the line: scale, or about half of it before the iteration
  int segment_bits;  // of u that choose the line
  std::vector<u64> constants, slopes;

  bool direct() const { return segment_bits == shape.fraction; }
  bool iterates() const { return line_scale < shape.scale; }
};
UnitReciprocal plan_unit_reciprocal(const UnitReciprocalShape& shape);

void clear_unit_reciprocal(const UnitReciprocal& plan, std::span<const u64> u, std::span<u64> out);

// `vectors`: of line_of(plan), if it is not direct.
functions::RingShares unit_reciprocal(functions::Evaluator& evaluator, const UnitReciprocal& plan,
                                      const functions::RingShares& u,
                                      twopc::RandomOneHots* vectors = nullptr);
LineLookup line_of(const UnitReciprocal& plan);

}  // namespace privml::fixed
