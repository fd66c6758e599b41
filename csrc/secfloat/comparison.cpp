// SPDX-License-Identifier: Apache-2.0
#include "secfloat/comparison.h"

#include "secfloat/operation.h"

namespace privml {
namespace {

constexpr int kMostMantissa = 31;

void check(FloatView a, FloatView b, i64 out, FloatFormat f) {
  expect_float_format(f, kMostMantissa);
  expect(a.size() == b.size() && a.size() == out, "floating-point comparison: lengths differ");
}

// Va - Vb of the signed images in Z_{2^width}; it lies within 2^(p+q+1), both ends included.
RingShares difference(Steps& steps, const FloatShares& a, const FloatShares& b, FloatFormat f,
                      int width) {
  const i64 n = steps.n;
  const RingShares both =
      magnitudes(steps, extended_mantissas(steps, a, b, f, width), a, b, f, width);
  const RingShares selected = steps.select(joined(a.sign, b.sign), both, width - 1);
  return steps.map(n, width, [&](i64 i) {
    return (both[i] - 2 * selected[i]) - (both[n + i] - 2 * selected[n + i]);
  });
}

BitShares equal(Steps& steps, const FloatShares& a, const FloatShares& b, FloatFormat f) {
  const int width = f.exponent + f.mantissa + 2;
  return steps.equal_zero(difference(steps, a, b, f, width), width);
}

// relation(steps, a, b) for all chunks.
template <class Relation>
void run_relation(Party& party, FloatView a, FloatView b, FloatFormat f, std::span<u8> out,
                  Relation&& relation) {
  check(a, b, std::ssize(out), f);
  run_steps(party, a.size(), [&](Steps& steps, i64 begin) {
    const BitShares result = relation(steps, steps.load(a, f, begin), steps.load(b, f, begin));
    steps.local(steps.n, [&](i64 i) { out[begin + i] = result[i]; });
  });
}

FloatShares maximum(Steps& steps, const FloatShares& a, const FloatShares& b, FloatFormat f) {
  return choose_floats(steps, less_than(steps, a, b, f), a, b, f);
}

FloatShares relu(Steps& steps, const FloatShares& a, FloatFormat f) {
  const i64 n = steps.n;
  const BitShares positive = steps.negated(a.sign);
  const u64 base = steps.constant(static_cast<u64>(f.least() - 1));
  const RingShares pairs =
      interleaved(steps, a.mantissa,
                  steps.map(n, f.exponent_bits(), [&](i64 i) { return a.exponent[i] - base; }));
  const RingShares kept = steps.select(positive, pairs, pair_width(f));
  FloatShares out{steps.or_bits(a.zero, a.sign), steps.map_bits(n, [](i64) { return 0; }),
                  exponents_of(steps, kept, f), mantissas_of(steps, kept, f)};
  steps.local(
      n, [&](i64 i) { out.exponent[i] = (out.exponent[i] + base) & low_mask(f.exponent_bits()); });
  return out;
}

}  // namespace

RingShares extended_mantissas(Steps& steps, const FloatShares& a, const FloatShares& b,
                              FloatFormat f, int width) {
  const BitShares top = steps.negated(joined(a.zero, b.zero));
  return steps.extend_shared_msb(joined(a.mantissa, b.mantissa), f.mantissa_bits(), top, width);
}

RingShares magnitudes(Steps& steps, const RingShares& mantissas, const FloatShares& a,
                      const FloatShares& b, FloatFormat f, int width) {
  const i64 n = steps.n;
  // Exponents wrap at 2^(p+q+2) here. Being below 2^p they are easily extended.
  const u64 bias = steps.constant(static_cast<u64>(f.greatest()));
  RingShares biased = steps.map(2 * n, f.exponent_bits(), [&](i64 i) {
    return (i < n ? a.exponent[i] : b.exponent[i - n]) + bias;
  });
  if (f.mantissa + f.exponent_bits() < width) {
    biased =
        steps.extend_bounded(biased, f.exponent_bits(), u64{1} << f.exponent, width - f.mantissa);
  }
  return steps.map(2 * n, width, [&](i64 i) { return mantissas[i] + (biased[i] << f.mantissa); });
}

BitShares less_than(Steps& steps, const FloatShares& a, const FloatShares& b, FloatFormat f) {
  const int width = f.exponent + f.mantissa + 3;
  return steps.most_significant_bit(difference(steps, a, b, f, width), width);
}

FloatShares choose_floats(Steps& steps, const BitShares& bit, const FloatShares& a,
                          const FloatShares& b, FloatFormat f) {
  const i64 n = steps.n;
  const RingShares pairs = interleaved(
      steps, steps.map(n, f.mantissa_bits(), [&](i64 i) { return b.mantissa[i] - a.mantissa[i]; }),
      steps.map(n, f.exponent_bits(), [&](i64 i) { return b.exponent[i] - a.exponent[i]; }));
  const RingShares chosen = steps.select(bit, pairs, pair_width(f));
  const BitShares bits = steps.and_bits(
      joined(bit, bit), joined(steps.map_bits(n, [&](i64 i) { return a.zero[i] ^ b.zero[i]; }),
                               steps.map_bits(n, [&](i64 i) { return a.sign[i] ^ b.sign[i]; })));
  FloatShares out{a.zero, a.sign, exponents_of(steps, chosen, f), mantissas_of(steps, chosen, f)};
  steps.local(n, [&](i64 i) {
    out.zero[i] ^= bits[i];
    out.sign[i] ^= bits[n + i];
    out.exponent[i] = (out.exponent[i] + a.exponent[i]) & low_mask(f.exponent_bits());
    out.mantissa[i] = (out.mantissa[i] + a.mantissa[i]) & low_mask(f.mantissa_bits());
  });
  return out;
}

void float_less_than(Party& party, FloatView a, FloatView b, FloatFormat f, std::span<u8> out) {
  run_relation(party, a, b, f, out, [&](Steps& steps, const FloatShares& x, const FloatShares& y) {
    return less_than(steps, x, y, f);
  });
}

void cost_float_less_than(CostMeter& meter, i64 n, FloatFormat f) {
  cost_binary_steps(meter, n, f, [&](Steps& steps, const FloatShares& x, const FloatShares& y) {
    less_than(steps, x, y, f);
  });
}

void float_less_equal(Party& party, FloatView a, FloatView b, FloatFormat f, std::span<u8> out) {
  run_relation(party, a, b, f, out, [&](Steps& steps, const FloatShares& x, const FloatShares& y) {
    return steps.negated(less_than(steps, y, x, f));
  });
}

void cost_float_less_equal(CostMeter& meter, i64 n, FloatFormat f) {
  cost_float_less_than(meter, n, f);
}

void float_equal(Party& party, FloatView a, FloatView b, FloatFormat f, std::span<u8> out) {
  run_relation(party, a, b, f, out, [&](Steps& steps, const FloatShares& x, const FloatShares& y) {
    return equal(steps, x, y, f);
  });
}

void cost_float_equal(CostMeter& meter, i64 n, FloatFormat f) {
  cost_binary_steps(meter, n, f, [&](Steps& steps, const FloatShares& x, const FloatShares& y) {
    equal(steps, x, y, f);
  });
}

void float_maximum(Party& party, FloatView a, FloatView b, FloatFormat f, FloatSpan out) {
  check(a, b, out.size(), f);
  run_binary_steps(party, a, b, f, out,
                   [&](Steps& steps, const FloatShares& x, const FloatShares& y) {
                     return maximum(steps, x, y, f);
                   });
}

void cost_float_maximum(CostMeter& meter, i64 n, FloatFormat f) {
  cost_binary_steps(meter, n, f, [&](Steps& steps, const FloatShares& x, const FloatShares& y) {
    maximum(steps, x, y, f);
  });
}

void float_relu(Party& party, FloatView a, FloatFormat f, FloatSpan out) {
  check(a, a, out.size(), f);
  run_unary_steps(party, a, f, out,
                  [&](Steps& steps, const FloatShares& x) { return relu(steps, x, f); });
}

void cost_float_relu(CostMeter& meter, i64 n, FloatFormat f) {
  cost_unary_steps(meter, n, f, [&](Steps& steps, const FloatShares& x) { relu(steps, x, f); });
}

void float_negate(Party& party, FloatView a, FloatSpan out) {
  for (i64 i = 0; i < a.size(); ++i) {
    out.zero[i] = a.zero[i];
    out.sign[i] = a.sign[i] ^ (party.rank == 0 ? 1 : 0);
    out.exponent[i] = a.exponent[i];
    out.mantissa[i] = a.mantissa[i];
  }
}

void float_absolute(Party&, FloatView a, FloatSpan out) {
  for (i64 i = 0; i < a.size(); ++i) {
    out.zero[i] = a.zero[i];
    out.sign[i] = 0;
    out.exponent[i] = a.exponent[i];
    out.mantissa[i] = a.mantissa[i];
  }
}

}  // namespace privml
