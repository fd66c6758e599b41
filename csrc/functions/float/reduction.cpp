// SPDX-License-Identifier: Apache-2.0
#include "functions/float/reduction.h"

#include <bit>

namespace privml::floating {
namespace {

constexpr int kExponentBits = kFloat32.exponent_bits(), kMantissaBits = kFloat32.mantissa_bits();

}  // namespace

ShiftedMantissa shift_mantissa(functions::Evaluator& evaluator, const FloatShares& a,
                               const MantissaShift& shift) {
  const int power_bits = shift.most - shift.least + 1;
  std::vector<u64> table(256, 0);
  for (int i = 0; i < 256; ++i) {
    const int e = i > 128 ? i - 256 : i;  // -127 .. 128
    const bool inside = e >= shift.least && e <= shift.most;
    const bool small = e >= kFloat32.least() && e<shift.least, large = e> shift.most;
    table[i] = (inside ? u64{1} << (e - shift.least) : 0) | u64{small} << power_bits |
               u64{large} << (power_bits + 1);
  }
  const WordTable tables[] = {{table, power_bits + 2}};
  const functions::RingShares found = lookup_words(evaluator, tables, a.exponent, 8)[0];
  // For zeros the mantissa is not what the extension expects; their power is 0.
  const functions::RingShares mantissa =
      evaluator.extend_known_msb(a.mantissa, kMantissaBits, 1, shift.bits);
  return {evaluator.multiply_word(field_at(evaluator, found, 0, power_bits), power_bits, mantissa,
                                  shift.bits),
          bit_at(evaluator, found, power_bits), bit_at(evaluator, found, power_bits + 1)};
}

FoldedAngle fold_angle(functions::Evaluator& evaluator, const functions::RingShares& angle,
                       const functions::RingShares& rest, int bits) {
  const i64 n = evaluator.n;
  const u64 whole = evaluator.constant(u64{1} << bits);
  FoldedAngle out{bit_at(evaluator, angle, 0), {}, {}};
  const functions::RingShares change =
      evaluator.map(n, bits + 1, [&](i64 i) { return whole - 2 * rest[i]; });
  const functions::Selected chosen =
      evaluator.select({{out.fold, change, 1, bits + 1}}, {{out.fold, bits + 1}});
  out.f = evaluator.map(n, bits + 1, [&](i64 i) { return rest[i] + chosen.selections[0][i]; });
  out.index =
      evaluator.map(n, bits + 1, [&](i64 i) { return out.f[i] - chosen.conversions[0][i]; });
  return out;
}

NormalizedMantissa normalize_mantissa(functions::Evaluator& evaluator,
                                      const functions::RingShares& x, int bits, int ring) {
  const i64 n = evaluator.n;
  std::vector<u64> powers(bits), places(bits), ones(bits, 1);
  for (int i = 0; i < bits; ++i) {
    powers[i] = u64{1} << (bits - 1 - i);
    places[i] = static_cast<u64>(i) + 1;
  }
  const functions::RingShares low = evaluator.map(n, bits, [&](i64 i) { return x[i]; });
  const functions::BitShares one_hot = evaluator.most_significant_nonzero_bit(low, bits);
  NormalizedMantissa out;
  out.zero = evaluator.negated(bit_at(evaluator, evaluator.one_hot_select(one_hot, ones), 0));
  out.mantissa = evaluator.multiply_word(evaluator.one_hot_select(one_hot, powers), bits, x, ring);
  out.place = evaluator.word_to_ring(
      evaluator.one_hot_select(one_hot, places),
      {static_cast<int>(std::bit_width(static_cast<unsigned>(bits)))}, kExponentBits);
  return out;
}

void take_small(functions::Evaluator& evaluator, const FloatShares& a,
                const functions::BitShares& small, int fraction_bits, functions::RingShares& d,
                functions::RingShares& e) {
  const u64 above = evaluator.constant(static_cast<u64>(fraction_bits) + 1);
  functions::RingShares pairs = evaluator.ring(2 * evaluator.n);
  evaluator.local(evaluator.n, [&](i64 i) {
    pairs[2 * i] = a.mantissa[i];
    pairs[2 * i + 1] = a.exponent[i] + above;
  });
  const functions::RingShares chosen = evaluator.select(small, pairs, kMantissaBits);
  evaluator.local(evaluator.n, [&](i64 i) {
    d[i] = (d[i] + (chosen[2 * i] << 5)) & low_mask(29);
    e[i] = (e[i] + chosen[2 * i + 1]) & low_mask(kExponentBits);
  });
}

}  // namespace privml::floating
