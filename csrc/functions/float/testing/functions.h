// SPDX-License-Identifier: Apache-2.0
// For tests: shares of floating-point numbers, and protocols beside their twins and costs.
#pragma once

#include "functions/float/clear.h"
#include "functions/float/operation.h"
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

template <class Shares>
struct VectorOf;
template <>
struct VectorOf<FloatShares> {
  using type = FloatVector;
};
template <>
struct VectorOf<functions::RingShares> {
  using type = twopc::testing::Words;
};
template <>
struct VectorOf<functions::BitShares> {
  using type = twopc::testing::Bits;
};

// Both parties' results of n elements; bytes, depth and correlations must equal the cost.
template <class Result, class... Arguments, class... Vectors>
auto results_of(const Operation<Result, Arguments...>& operation, i64 n,
                const twopc::testing::OtKind& ot,
                const twopc::testing::Both<Vectors>&... arguments) {
  using Vector = typename VectorOf<Result>::type;
  twopc::testing::Both<Vector> out{Vector(n), Vector(n)};
  const twopc::testing::Outcome outcome = twopc::testing::run_parties(ot, [&](ot::Party& party) {
    operation.run(party, arguments[party.rank]..., out[party.rank]);
  });
  twopc::testing::expect_cost_equals(outcome,
                                     [&](ot::CostMeter& meter) { operation.cost(meter, n); });
  return out;
}

struct UnaryFloat {
  FloatUnary (*operation)(FloatFormat);
  FloatValue (*twin)(FloatValue, FloatFormat);
};
struct BinaryFloat {
  FloatBinary (*operation)(FloatFormat);
  FloatValue (*twin)(FloatValue, FloatValue, FloatFormat);
};

// Equality with the twin, and of the cost.
inline void expect_equals_twin(const UnaryFloat& tested, const Values& values, FloatFormat f,
                               const twopc::testing::OtKind& ot = {}) {
  SCOPED_TRACE(::testing::Message() << "(" << f.exponent << ", " << f.mantissa << ")");
  const Values results = reconstruct_floats(
      results_of(tested.operation(f), std::ssize(values), ot, share_floats(values, f, 3)), f);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(results[i], tested.twin(values[i], f)) << ::testing::PrintToString(values[i]);
  }
}

inline void expect_equals_twin(const BinaryFloat& tested, const Pairs& pairs, FloatFormat f,
                               const twopc::testing::OtKind& ot = {}) {
  SCOPED_TRACE(::testing::Message() << "(" << f.exponent << ", " << f.mantissa << ")");
  const Values results =
      reconstruct_floats(results_of(tested.operation(f), std::ssize(pairs.a), ot,
                                    share_floats(pairs.a, f, 3), share_floats(pairs.b, f, 4)),
                         f);
  for (std::size_t i = 0; i < results.size(); ++i) {
    ASSERT_EQ(results[i], tested.twin(pairs.a[i], pairs.b[i], f))
        << ::testing::PrintToString(pairs.a[i]) << " and " << ::testing::PrintToString(pairs.b[i]);
  }
}

}  // namespace privml::floating::testing
