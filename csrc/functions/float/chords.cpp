// SPDX-License-Identifier: Apache-2.0
// The common part of quotients and square roots.
#include "functions/float/division.h"
#include "functions/float/quotient.h"

namespace privml::floating {

// start * 2^offset - slope * rest.
functions::RingShares chord_value(functions::Evaluator& evaluator, std::span<const u64> table,
                                  const functions::RingShares& index, int index_bits,
                                  const functions::RingShares& rest, int q) {
  const auto [g, s, offset] = quotient_plan(q);
  const int start_bits = s + 1, slope_bits = s - g + 1, ell = s + 1 + offset;
  const functions::RingShares words =
      evaluator.lookup_xor(table, index, index_bits, start_bits + slope_bits);
  const i64 n = index.count;
  const functions::RingShares start = evaluator.map(n, start_bits, [&](i64 i) { return words[i]; });
  const functions::RingShares slope =
      evaluator.map(n, slope_bits, [&](i64 i) { return words[i] >> start_bits; });
  const functions::RingShares negative =
      evaluator.map(n, ell, [&](i64 i) { return u64{0} - rest[i]; });
  const twopc::LinearShape shape{{start_bits, false}, offset, {slope_bits, false}, ell};
  return evaluator.truncate_reduce(evaluator.linear_words(shape, start, slope, negative), ell,
                                   offset);
}

// epsilon + 2^(epsilon_bits - 2) has its top bit clear, so that no factor needs a comparison.
functions::RingShares refine(functions::Evaluator& evaluator, const functions::RingShares& a,
                             const functions::RingShares& epsilon, const RefineShape& shape) {
  const auto [a_bits, epsilon_bits, fraction, drop, out_bits] = shape;
  const i64 n = a.count;
  const int ring = out_bits + drop, product_bits = std::min(a_bits + epsilon_bits, ring);
  const u64 offset = u64{1} << (epsilon_bits - 2), added = evaluator.constant(offset);
  const functions::RingShares positive =
      evaluator.map(n, epsilon_bits, [&](i64 i) { return epsilon[i] + added; });
  twopc::FactorFormat a_format{a_bits, false}, epsilon_format{epsilon_bits, false};
  a_format.nonnegative = epsilon_format.nonnegative = true;
  functions::RingShares product =
      evaluator.multiply(a, a_format, positive, epsilon_format, product_bits);
  if (product_bits < ring) product = evaluator.extend_nonnegative(product, product_bits, ring);
  const int wide_bits = std::max(a_bits, ring - (epsilon_bits - 2));
  const functions::RingShares wide = evaluator.extend_nonnegative(a, a_bits, wide_bits);
  const functions::RingShares sum = evaluator.map(
      n, ring, [&](i64 i) { return (wide[i] << fraction) - offset * wide[i] + product[i]; });
  return evaluator.truncate_reduce(sum, ring, drop);
}

}  // namespace privml::floating
