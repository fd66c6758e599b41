// SPDX-License-Identifier: Apache-2.0
#include "functions/float/result.h"

namespace privml::floating {
namespace {

constexpr int kExponentBits = kFloat32.exponent_bits(), kMantissaBits = kFloat32.mantissa_bits();
constexpr u64 kBias = 127;

}  // namespace

FloatShares round_result(functions::Evaluator& evaluator, const functions::RingShares& exponent,
                         const functions::RingShares& v) {
  const i64 n = evaluator.n;
  const u64 threshold = evaluator.constant(kUpperBinade), half = evaluator.constant(32);
  const functions::RingShares above =
      evaluator.map(n, kResultBits, [&](i64 i) { return v[i] - threshold; });
  const functions::BitShares lower = evaluator.most_significant_bit(above, kResultBits);
  const functions::BitShares upper = evaluator.negated(lower);
  const functions::Selected chosen =
      evaluator.select({{lower, v, 1, kResultBits - 1}}, {{upper, kExponentBits}});
  const functions::RingShares sum = evaluator.map(
      n, kResultBits - 1, [&](i64 i) { return v[i] + chosen.selections[0][i] + half; });
  const functions::BitShares none = evaluator.map_bits(n, [](i64) { return u8{0}; });
  FloatShares out{none, none, {}, {}};
  out.mantissa = evaluator.truncate_reduce(sum, kResultBits - 1, kResultBits - 1 - kMantissaBits);
  out.exponent = evaluator.map(n, kExponentBits,
                               [&](i64 i) { return exponent[i] + chosen.conversions[0][i]; });
  return out;
}

FloatShares finish_result(functions::Evaluator& evaluator, const FloatShares& r,
                          const functions::BitShares& zero, const functions::BitShares* infinite) {
  const i64 n = evaluator.n;
  const u64 bias = evaluator.constant(kBias);
  const auto is_beyond = [&](i64 i) { return infinite ? (*infinite)[i] : u8{0}; };
  const functions::BitShares ordinary = evaluator.negated(
      evaluator.map_bits(n, [&](i64 i) { return static_cast<u8>(zero[i] ^ is_beyond(i)); }));
  functions::RingShares pairs = evaluator.ring(2 * n);
  evaluator.local(n, [&](i64 i) {
    pairs[2 * i] = r.mantissa[i];
    pairs[2 * i + 1] = r.exponent[i] + bias;
  });
  const functions::Selection kept{ordinary, pairs, 2, kMantissaBits};
  const functions::Selected chosen = infinite
                                         ? evaluator.select({kept}, {{*infinite, kExponentBits}})
                                         : evaluator.select({kept}, {});
  const functions::RingShares& pair = chosen.selections[0];
  FloatShares out{zero, r.sign, {}, {}};
  // An additive share of the top bit of a ring element is also an XOR share.
  out.mantissa = evaluator.map(n, kMantissaBits, [&](i64 i) {
    return pair[2 * i] + (u64{is_beyond(i)} << (kMantissaBits - 1));
  });
  out.exponent = evaluator.map(n, kExponentBits, [&](i64 i) {
    const u64 infinity = infinite ? chosen.conversions[0][i] * (kBias + 128) : 0;
    return pair[2 * i + 1] + infinity - bias;
  });
  return out;
}

FloatShares finish_by_exponent(functions::Evaluator& evaluator, const FloatShares& r) {
  const i64 n = evaluator.n;
  const u64 greatest = evaluator.constant(127), least = evaluator.constant(126);
  functions::RingShares room = evaluator.ring(2 * n);
  evaluator.local(n, [&](i64 i) {
    room[i] = (greatest - r.exponent[i]) & low_mask(kExponentBits);
    room[n + i] = (least + r.exponent[i]) & low_mask(kExponentBits);
  });
  const functions::BitShares outside = evaluator.most_significant_bit(room, kExponentBits);
  const functions::BitShares above = functions::part_of(outside, n, 0),
                             below = functions::part_of(outside, n, 1);
  return finish_result(evaluator, r, below, &above);
}

}  // namespace privml::floating
