// SPDX-License-Identifier: Apache-2.0
#include "functions/float/selection.h"

namespace privml::floating {
namespace {

FloatShares selected_floats(functions::Evaluator& evaluator, const functions::BitShares& bits,
                            const FloatShares& a, FloatFormat f) {
  const i64 n = evaluator.n;
  // Relative to +0, whose exponent is the one below the least.
  const u64 base = evaluator.constant(static_cast<u64>(f.least() - 1));
  const functions::RingShares exponent =
      evaluator.map(n, f.exponent_bits(), [&](i64 i) { return a.exponent[i] - base; });
  const functions::BitShares nonzero = evaluator.negated(a.zero);
  const functions::RingShares both =
      evaluator.map(2 * n, 1, [&](i64 i) { return i % 2 == 0 ? a.sign[i / 2] : nonzero[i / 2]; });
  const functions::Selected chosen = evaluator.select({{bits, a.mantissa, 1, f.mantissa_bits()},
                                                       {bits, exponent, 1, f.exponent_bits()},
                                                       {bits, both, 2, 1}},
                                                      {});
  const functions::RingShares& chosen_bits = chosen.selections[2];
  FloatShares out{
      evaluator.map_bits(n, [&](i64 i) { return chosen_bits[2 * i + 1]; }),
      evaluator.map_bits(n, [&](i64 i) { return chosen_bits[2 * i]; }),
      evaluator.map(n, f.exponent_bits(), [&](i64 i) { return chosen.selections[1][i] + base; }),
      chosen.selections[0]};
  out.zero = evaluator.negated(out.zero);
  return out;
}

}  // namespace

Operation<FloatShares, functions::BitShares, FloatShares> float_select(FloatFormat f) {
  expect_float_format(f);
  return {{BitFormat{}, f}, with(selected_floats, f)};
}

}  // namespace privml::floating
