// SPDX-License-Identifier: Apache-2.0
#include "functions/float/selection.h"

#include "functions/float/shares.h"

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

void float_select(ot::Party& party, std::span<const u8> bits, FloatView a, FloatFormat f,
                  FloatSpan out) {
  expect_float_format(f);
  expect(a.size() == std::ssize(bits) && a.size() == out.size(), "float_select: lengths differ");
  functions::evaluate_chunks(
      party, a.size(), kFloatChunk, [&](functions::Evaluator& evaluator, i64 begin) {
        const functions::BitShares chosen =
            evaluator.map_bits(evaluator.n, [&](i64 i) { return bits[begin + i]; });
        store_floats(evaluator,
                     selected_floats(evaluator, chosen, load_floats(evaluator, a, f, begin), f),
                     out, begin);
      });
}

void cost_float_select(ot::CostMeter& meter, i64 n, FloatFormat f) {
  functions::cost_chunks(meter, n, kFloatChunk, [&](functions::Evaluator& evaluator, i64) {
    selected_floats(evaluator, evaluator.bits(evaluator.n), load_floats(evaluator, {}, f, 0), f);
  });
}

}  // namespace privml::floating
