// SPDX-License-Identifier: Apache-2.0
// For tests: shares of floating-point numbers, and protocols beside their twins and costs.
#pragma once

#include "functions/float/clear.h"
#include "functions/float/testing/reference.h"
#include "twopc/testing/parties.h"

namespace privml::floating {

inline void PrintTo(FloatValue v, std::ostream* out) {
  *out << (v.sign ? "-" : "+") << v.mantissa << " * 2^" << v.exponent << (v.zero ? " (zero)" : "");
}

}  // namespace privml::floating

namespace privml::floating::testing {

using Values = std::vector<FloatValue>;

inline twopc::testing::Both<FloatVector> share_floats(const Values& values, FloatFormat f,
                                                      u64 seed = 1) {
  std::mt19937_64 random(seed);
  const i64 n = std::ssize(values);
  FloatVector clear(n);
  twopc::testing::Both<FloatVector> shares{FloatVector(n), FloatVector(n)};
  for (i64 i = 0; i < n; ++i) {
    store_value(values[i], f, clear, i);
    shares[0].zero[i] = random() & 1;
    shares[0].sign[i] = random() & 1;
    shares[0].exponent[i] = random() & low_mask(f.exponent_bits());
    shares[0].mantissa[i] = random() & low_mask(f.mantissa_bits());
    shares[1].zero[i] = clear.zero[i] ^ shares[0].zero[i];
    shares[1].sign[i] = clear.sign[i] ^ shares[0].sign[i];
    shares[1].exponent[i] =
        (clear.exponent[i] - shares[0].exponent[i]) & low_mask(f.exponent_bits());
    shares[1].mantissa[i] =
        (clear.mantissa[i] - shares[0].mantissa[i]) & low_mask(f.mantissa_bits());
  }
  return shares;
}

inline Values reconstruct_floats(const twopc::testing::Both<FloatVector>& shares, FloatFormat f) {
  const i64 n = shares[0].size();
  FloatVector clear(n);
  Values values(n);
  for (i64 i = 0; i < n; ++i) {
    clear.zero[i] = shares[0].zero[i] ^ shares[1].zero[i];
    clear.sign[i] = shares[0].sign[i] ^ shares[1].sign[i];
    clear.exponent[i] =
        (shares[0].exponent[i] + shares[1].exponent[i]) & low_mask(f.exponent_bits());
    clear.mantissa[i] =
        (shares[0].mantissa[i] + shares[1].mantissa[i]) & low_mask(f.mantissa_bits());
    values[i] = load_value(clear, f, i);
  }
  return values;
}

// Pairs of values of a format.
struct Pairs {
  Values a, b;
};

inline Pairs all_pairs(FloatFormat f) {
  Values values;
  for_all_values(f, [&](FloatValue v) { values.push_back(v); });
  Pairs pairs;
  for (const FloatValue a : values) {
    for (const FloatValue b : values) {
      pairs.a.push_back(a);
      pairs.b.push_back(b);
    }
  }
  return pairs;
}

// Random mantissas and edges of them, exponents near each other, at the ends or anywhere; zeros and
// infinities.
inline Pairs random_pairs(i64 n, FloatFormat f, u64 seed = 1) {
  std::mt19937_64 random(seed);
  const u64 one = u64{1} << f.mantissa;
  const u64 edges[] = {one, one + 1, 2 * one - 1, 2 * one - 2, one + one / 2, one + one / 2 + 1};
  const auto any = [&](int exponent) {
    const u64 mantissa = random() % 3 == 0 ? edges[random() % 6] : one + random() % one;
    const int e =
        std::clamp<int>(exponent, static_cast<int>(f.least()), static_cast<int>(f.greatest()));
    const bool sign = random() & 1;
    const u64 kind = random() % 64;
    if (kind == 0) return float_zero(f, sign);
    if (kind == 1) return float_infinity(f, sign);
    return FloatValue{false, sign, e, mantissa};
  };
  Pairs pairs;
  const int range = static_cast<int>(f.greatest() - f.least() + 1);
  for (i64 i = 0; i < n; ++i) {
    const int e = static_cast<int>(f.least()) + static_cast<int>(random() % range);
    const int near = e + static_cast<int>(random() % (2 * f.mantissa + 8)) - f.mantissa - 4;
    const int opposite = static_cast<int>(random() % 5) - 2 - e;  // products near 1
    const int end = (random() & 1 ? static_cast<int>(f.least()) : static_cast<int>(f.greatest())) -
                    e + static_cast<int>(random() % 5) - 2;  // products near the ends
    const int choice[] = {near, opposite, end, static_cast<int>(random() % range)};
    pairs.a.push_back(any(e));
    pairs.b.push_back(any(choice[random() % 4]));
    if (random() % 16 == 0) pairs.b.back().mantissa = pairs.a.back().mantissa;
    if (pairs.b.back().zero || is_infinity(pairs.b.back(), f)) {
      pairs.b.back().mantissa = pairs.b.back().zero ? 0 : one;
    } else if (pairs.b.back().mantissa == 0) {
      pairs.b.back().mantissa = one;
    }
  }
  return pairs;
}

struct BinaryFloat {
  void (*protocol)(ot::Party&, FloatView, FloatView, FloatFormat, FloatSpan);
  FloatValue (*twin)(FloatValue, FloatValue, FloatFormat);
  void (*cost)(ot::CostMeter&, i64, FloatFormat);
};

// Equality with the twin, and of bytes, depth and correlations with the cost.
inline void expect_equals_twin(const BinaryFloat& operation, const Pairs& pairs, FloatFormat f,
                               const twopc::testing::OtKind& ot = {}) {
  SCOPED_TRACE(::testing::Message() << "(" << f.exponent << ", " << f.mantissa << ")");
  const i64 n = std::ssize(pairs.a);
  const twopc::testing::Both<FloatVector> a = share_floats(pairs.a, f, 3),
                                          b = share_floats(pairs.b, f, 4);
  twopc::testing::Both<FloatVector> out{FloatVector(n), FloatVector(n)};
  const twopc::testing::Outcome outcome = twopc::testing::run_parties(ot, [&](ot::Party& party) {
    operation.protocol(party, a[party.rank], b[party.rank], f, out[party.rank]);
  });
  const Values results = reconstruct_floats(out, f);
  for (i64 i = 0; i < n; ++i) {
    ASSERT_EQ(results[i], operation.twin(pairs.a[i], pairs.b[i], f))
        << ::testing::PrintToString(pairs.a[i]) << " and " << ::testing::PrintToString(pairs.b[i]);
  }
  twopc::testing::expect_cost_equals(outcome,
                                     [&](ot::CostMeter& meter) { operation.cost(meter, n, f); });
}

}  // namespace privml::floating::testing
