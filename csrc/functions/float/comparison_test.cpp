// SPDX-License-Identifier: Apache-2.0
#include "functions/float/comparison.h"

#include "functions/float/testing/functions.h"

namespace privml::floating {
namespace {

using namespace floating::testing;
using namespace twopc::testing;

using Relation = void (*)(ot::Party&, FloatView, FloatView, FloatFormat, std::span<u8>);
using RelationTwin = bool (*)(FloatValue, FloatValue);
using Cost = void (*)(ot::CostMeter&, i64, FloatFormat);

void expect_relation(Relation protocol, RelationTwin twin, Cost cost, const Pairs& pairs,
                     FloatFormat f, const OtKind& ot = {}) {
  SCOPED_TRACE(::testing::Message() << "(" << f.exponent << ", " << f.mantissa << ")");
  const i64 n = std::ssize(pairs.a);
  const Both<FloatVector> a = share_floats(pairs.a, f, 3), b = share_floats(pairs.b, f, 4);
  Both<Bits> out{Bits(n), Bits(n)};
  const Outcome outcome = run_parties(ot, [&](ot::Party& party) {
    protocol(party, a[party.rank], b[party.rank], f, out[party.rank]);
  });
  const Bits results = reconstruct_bits(out);
  for (i64 i = 0; i < n; ++i) {
    ASSERT_EQ(results[i], twin(pairs.a[i], pairs.b[i]))
        << ::testing::PrintToString(pairs.a[i]) << " and " << ::testing::PrintToString(pairs.b[i]);
  }
  expect_cost_equals(outcome, [&](ot::CostMeter& meter) { cost(meter, n, f); });
}

void expect_relations(const Pairs& pairs, FloatFormat f, const OtKind& ot = {}) {
  expect_relation(float_less_than, clear_float_less_than, cost_float_less_than, pairs, f, ot);
  expect_relation(float_less_equal, clear_float_less_equal, cost_float_less_equal, pairs, f, ot);
  expect_relation(float_equal, clear_float_equal, cost_float_equal, pairs, f, ot);
}

constexpr BinaryFloat kMaximum{
    float_maximum,
    [](FloatValue a, FloatValue b, FloatFormat) { return clear_float_maximum(a, b); },
    cost_float_maximum};

// The unary ones, with a second operand that they leave alone.
constexpr BinaryFloat kRelu{
    [](ot::Party& party, FloatView a, FloatView, FloatFormat f, FloatSpan out) {
      float_relu(party, a, f, out);
    },
    [](FloatValue a, FloatValue, FloatFormat f) { return clear_float_relu(a, f); },
    cost_float_relu};
constexpr BinaryFloat kNegate{
    [](ot::Party& party, FloatView a, FloatView, FloatFormat, FloatSpan out) {
      float_negate(party, a, out);
    },
    [](FloatValue a, FloatValue, FloatFormat) { return clear_float_negate(a); },
    [](ot::CostMeter&, i64, FloatFormat) {}};
constexpr BinaryFloat kAbsolute{
    [](ot::Party& party, FloatView a, FloatView, FloatFormat, FloatSpan out) {
      float_absolute(party, a, out);
    },
    [](FloatValue a, FloatValue, FloatFormat) { return clear_float_absolute(a); },
    [](ot::CostMeter&, i64, FloatFormat) {}};

TEST(FloatComparison, AllPairsOfASmallFormat) {
  const FloatFormat f{4, 3};
  const Pairs pairs = all_pairs(f);
  expect_relations(pairs, f);
  for (const BinaryFloat& operation : {kMaximum, kRelu, kNegate, kAbsolute}) {
    expect_equals_twin(operation, pairs, f);
  }
}

TEST(FloatComparison, RandomPairs) {
  for (const FloatFormat f :
       {kFloat32, FloatFormat{8, 7}, FloatFormat{5, 10}, FloatFormat{8, 27}, FloatFormat{11, 31}}) {
    const Pairs pairs = random_pairs(10000, f);
    expect_relations(pairs, f);
    expect_equals_twin(kMaximum, pairs, f);
    expect_equals_twin(kRelu, pairs, f);
  }
  const Pairs pairs = random_pairs(500, kFloat32);
  expect_relations(pairs, kFloat32, {false, 4});
  expect_equals_twin(kMaximum, pairs, kFloat32, {false, 4});
  expect_equals_twin(kRelu, pairs, kFloat32, {false, 4});
}

}  // namespace
}  // namespace privml::floating
