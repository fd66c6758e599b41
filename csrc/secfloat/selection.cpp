// SPDX-License-Identifier: Apache-2.0
#include "secfloat/selection.h"

#include "secfloat/operation.h"

namespace privml {
namespace {

FloatShares selected_floats(Steps& steps, const BitShares& bits, const FloatShares& a,
                            FloatFormat f) {
  const i64 n = steps.n;
  // Relative to +0, whose exponent is the one below the least.
  const u64 base = steps.constant(static_cast<u64>(f.least() - 1));
  const RingShares exponent =
      steps.map(n, f.exponent_bits(), [&](i64 i) { return a.exponent[i] - base; });
  const BitShares nonzero = steps.negated(a.zero);
  const RingShares both =
      steps.map(2 * n, 1, [&](i64 i) { return i % 2 == 0 ? a.sign[i / 2] : nonzero[i / 2]; });
  const Selected chosen = steps.select({{bits, a.mantissa, 1, f.mantissa_bits()},
                                        {bits, exponent, 1, f.exponent_bits()},
                                        {bits, both, 2, 1}},
                                       {});
  const RingShares& chosen_bits = chosen.selections[2];
  FloatShares out{
      steps.map_bits(n, [&](i64 i) { return chosen_bits[2 * i + 1]; }),
      steps.map_bits(n, [&](i64 i) { return chosen_bits[2 * i]; }),
      steps.map(n, f.exponent_bits(), [&](i64 i) { return chosen.selections[1][i] + base; }),
      chosen.selections[0]};
  out.zero = steps.negated(out.zero);
  return out;
}

}  // namespace

void float_select(Party& party, std::span<const u8> bits, FloatView a, FloatFormat f,
                  FloatSpan out) {
  expect_float_format(f);
  expect(a.size() == std::ssize(bits) && a.size() == out.size(), "float_select: lengths differ");
  run_steps(party, a.size(), [&](Steps& steps, i64 begin) {
    const BitShares chosen = steps.map_bits(steps.n, [&](i64 i) { return bits[begin + i]; });
    steps.store(selected_floats(steps, chosen, steps.load(a, f, begin), f), out, begin);
  });
}

void cost_float_select(CostMeter& meter, i64 n, FloatFormat f) {
  cost_steps(meter, n, [&](Steps& steps, i64) {
    selected_floats(steps, steps.bits(steps.n), steps.load({}, f, 0), f);
  });
}

}  // namespace privml
