// SPDX-License-Identifier: Apache-2.0
#include "functions/float/selection.h"

#include "functions/float/operation.h"

namespace privml {
namespace {

FloatShares selected_floats(Evaluator& evaluator, const BitShares& bits, const FloatShares& a,
                            FloatFormat f) {
  const i64 n = evaluator.n;
  // Relative to +0, whose exponent is the one below the least.
  const u64 base = evaluator.constant(static_cast<u64>(f.least() - 1));
  const RingShares exponent =
      evaluator.map(n, f.exponent_bits(), [&](i64 i) { return a.exponent[i] - base; });
  const BitShares nonzero = evaluator.negated(a.zero);
  const RingShares both =
      evaluator.map(2 * n, 1, [&](i64 i) { return i % 2 == 0 ? a.sign[i / 2] : nonzero[i / 2]; });
  const Selected chosen = evaluator.select({{bits, a.mantissa, 1, f.mantissa_bits()},
                                            {bits, exponent, 1, f.exponent_bits()},
                                            {bits, both, 2, 1}},
                                           {});
  const RingShares& chosen_bits = chosen.selections[2];
  FloatShares out{
      evaluator.map_bits(n, [&](i64 i) { return chosen_bits[2 * i + 1]; }),
      evaluator.map_bits(n, [&](i64 i) { return chosen_bits[2 * i]; }),
      evaluator.map(n, f.exponent_bits(), [&](i64 i) { return chosen.selections[1][i] + base; }),
      chosen.selections[0]};
  out.zero = evaluator.negated(out.zero);
  return out;
}

}  // namespace

void float_select(Party& party, std::span<const u8> bits, FloatView a, FloatFormat f,
                  FloatSpan out) {
  expect_float_format(f);
  expect(a.size() == std::ssize(bits) && a.size() == out.size(), "float_select: lengths differ");
  evaluate_chunks(party, a.size(), [&](Evaluator& evaluator, i64 begin) {
    const BitShares chosen =
        evaluator.map_bits(evaluator.n, [&](i64 i) { return bits[begin + i]; });
    evaluator.store(selected_floats(evaluator, chosen, evaluator.load(a, f, begin), f), out, begin);
  });
}

void cost_float_select(CostMeter& meter, i64 n, FloatFormat f) {
  cost_chunks(meter, n, [&](Evaluator& evaluator, i64) {
    selected_floats(evaluator, evaluator.bits(evaluator.n), evaluator.load({}, f, 0), f);
  });
}

}  // namespace privml
