// SPDX-License-Identifier: Apache-2.0
#include "functions/float/comparison.h"

namespace privml::floating {
namespace {

constexpr int kMostMantissa = 31;

// Va - Vb of the signed images in Z_{2^width}; it lies within 2^(p+q+1), both ends included.
functions::RingShares difference(functions::Evaluator& evaluator, const FloatShares& a,
                                 const FloatShares& b, FloatFormat f, int width) {
  const i64 n = evaluator.n;
  const functions::RingShares both =
      magnitudes(evaluator, extended_mantissas(evaluator, a, b, f, width), a, b, f, width);
  const functions::RingShares selected =
      evaluator.select(functions::joined(a.sign, b.sign), both, width - 1);
  return evaluator.map(n, width, [&](i64 i) {
    return (both[i] - 2 * selected[i]) - (both[n + i] - 2 * selected[n + i]);
  });
}

functions::BitShares equal(functions::Evaluator& evaluator, const FloatShares& a,
                           const FloatShares& b, FloatFormat f) {
  const int width = f.exponent + f.mantissa + 2;
  return evaluator.equal_zero(difference(evaluator, a, b, f, width), width);
}

functions::BitShares less_equal(functions::Evaluator& evaluator, const FloatShares& a,
                                const FloatShares& b, FloatFormat f) {
  return evaluator.negated(less_than(evaluator, b, a, f));
}

FloatShares maximum(functions::Evaluator& evaluator, const FloatShares& a, const FloatShares& b,
                    FloatFormat f) {
  return choose_floats(evaluator, less_than(evaluator, a, b, f), a, b, f);
}

FloatShares relu(functions::Evaluator& evaluator, const FloatShares& a, FloatFormat f) {
  const i64 n = evaluator.n;
  const functions::BitShares positive = evaluator.negated(a.sign);
  const u64 base = evaluator.constant(static_cast<u64>(f.least() - 1));
  const functions::RingShares pairs =
      interleaved(evaluator, a.mantissa,
                  evaluator.map(n, f.exponent_bits(), [&](i64 i) { return a.exponent[i] - base; }));
  const functions::RingShares kept = evaluator.select(positive, pairs, pair_width(f));
  FloatShares out{evaluator.or_bits(a.zero, a.sign), evaluator.map_bits(n, [](i64) { return 0; }),
                  exponents_of(evaluator, kept, f), mantissas_of(evaluator, kept, f)};
  evaluator.local(
      n, [&](i64 i) { out.exponent[i] = (out.exponent[i] + base) & low_mask(f.exponent_bits()); });
  return out;
}

FloatShares negative(functions::Evaluator& evaluator, const FloatShares& a) {
  return {a.zero, evaluator.negated(a.sign), a.exponent, a.mantissa};
}

FloatShares magnitude(functions::Evaluator& evaluator, const FloatShares& a) {
  return {a.zero, evaluator.map_bits(evaluator.n, [](i64) { return 0; }), a.exponent, a.mantissa};
}

}  // namespace

functions::RingShares extended_mantissas(functions::Evaluator& evaluator, const FloatShares& a,
                                         const FloatShares& b, FloatFormat f, int width) {
  const functions::BitShares top = evaluator.negated(functions::joined(a.zero, b.zero));
  return evaluator.extend_shared_msb(functions::joined(a.mantissa, b.mantissa), f.mantissa_bits(),
                                     top, width);
}

functions::RingShares magnitudes(functions::Evaluator& evaluator,
                                 const functions::RingShares& mantissas, const FloatShares& a,
                                 const FloatShares& b, FloatFormat f, int width) {
  const i64 n = evaluator.n;
  // Exponents wrap at 2^(p+q+2) here. Being below 2^p they are easily extended.
  const u64 bias = evaluator.constant(static_cast<u64>(f.greatest()));
  functions::RingShares biased = evaluator.map(2 * n, f.exponent_bits(), [&](i64 i) {
    return (i < n ? a.exponent[i] : b.exponent[i - n]) + bias;
  });
  if (f.mantissa + f.exponent_bits() < width) {
    biased = evaluator.extend_bounded(biased, f.exponent_bits(), u64{1} << f.exponent,
                                      width - f.mantissa);
  }
  return evaluator.map(2 * n, width,
                       [&](i64 i) { return mantissas[i] + (biased[i] << f.mantissa); });
}

functions::BitShares less_than(functions::Evaluator& evaluator, const FloatShares& a,
                               const FloatShares& b, FloatFormat f) {
  const int width = f.exponent + f.mantissa + 3;
  return evaluator.most_significant_bit(difference(evaluator, a, b, f, width), width);
}

FloatShares choose_floats(functions::Evaluator& evaluator, const functions::BitShares& bit,
                          const FloatShares& a, const FloatShares& b, FloatFormat f) {
  const i64 n = evaluator.n;
  const functions::RingShares pairs = interleaved(
      evaluator,
      evaluator.map(n, f.mantissa_bits(), [&](i64 i) { return b.mantissa[i] - a.mantissa[i]; }),
      evaluator.map(n, f.exponent_bits(), [&](i64 i) { return b.exponent[i] - a.exponent[i]; }));
  const functions::RingShares chosen = evaluator.select(bit, pairs, pair_width(f));
  const functions::BitShares bits = evaluator.and_bits(
      functions::joined(bit, bit),
      functions::joined(evaluator.map_bits(n, [&](i64 i) { return a.zero[i] ^ b.zero[i]; }),
                        evaluator.map_bits(n, [&](i64 i) { return a.sign[i] ^ b.sign[i]; })));
  FloatShares out{a.zero, a.sign, exponents_of(evaluator, chosen, f),
                  mantissas_of(evaluator, chosen, f)};
  evaluator.local(n, [&](i64 i) {
    out.zero[i] ^= bits[i];
    out.sign[i] ^= bits[n + i];
    out.exponent[i] = (out.exponent[i] + a.exponent[i]) & low_mask(f.exponent_bits());
    out.mantissa[i] = (out.mantissa[i] + a.mantissa[i]) & low_mask(f.mantissa_bits());
  });
  return out;
}

FloatRelation float_less_than(FloatFormat f) {
  expect_float_format(f, kMostMantissa);
  return {{f, f}, with(less_than, f)};
}

FloatRelation float_less_equal(FloatFormat f) {
  expect_float_format(f, kMostMantissa);
  return {{f, f}, with(less_equal, f)};
}

FloatRelation float_equal(FloatFormat f) {
  expect_float_format(f, kMostMantissa);
  return {{f, f}, with(equal, f)};
}

FloatBinary float_maximum(FloatFormat f) {
  expect_float_format(f, kMostMantissa);
  return {{f, f}, with(maximum, f)};
}

FloatUnary float_relu(FloatFormat f) {
  expect_float_format(f, kMostMantissa);
  return {{f}, with(relu, f)};
}

FloatUnary float_negate(FloatFormat f) { return {{f}, negative}; }

FloatUnary float_absolute(FloatFormat f) { return {{f}, magnitude}; }

}  // namespace privml::floating
