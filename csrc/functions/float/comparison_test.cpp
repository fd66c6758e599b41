// SPDX-License-Identifier: Apache-2.0
#include "functions/float/comparison.h"

#include "functions/float/testing/functions.h"

namespace privml::floating {
namespace {

using namespace floating::testing;
using namespace twopc::testing;

void expect_relation(FloatRelation (*relation)(FloatFormat), bool (*twin)(FloatValue, FloatValue),
                     const Pairs& pairs, FloatFormat f, const OtKind& ot) {
  SCOPED_TRACE(::testing::Message() << "(" << f.exponent << ", " << f.mantissa << ")");
  const Bits results =
      reconstruct_bits(results_of(relation(f), std::ssize(pairs.a), ot, share_floats(pairs.a, f, 3),
                                  share_floats(pairs.b, f, 4)));
  for (std::size_t i = 0; i < results.size(); ++i) {
    ASSERT_EQ(results[i], twin(pairs.a[i], pairs.b[i]))
        << ::testing::PrintToString(pairs.a[i]) << " and " << ::testing::PrintToString(pairs.b[i]);
  }
}

void expect_relations(const Pairs& pairs, FloatFormat f, const OtKind& ot = {}) {
  expect_relation(float_less_than, clear_float_less_than, pairs, f, ot);
  expect_relation(float_less_equal, clear_float_less_equal, pairs, f, ot);
  expect_relation(float_equal, clear_float_equal, pairs, f, ot);
}

constexpr BinaryFloat kMaximum{float_maximum, [](FloatValue a, FloatValue b, FloatFormat) {
                                 return clear_float_maximum(a, b);
                               }};
constexpr UnaryFloat kRelu{float_relu, clear_float_relu};
constexpr UnaryFloat kNegate{float_negate,
                             [](FloatValue a, FloatFormat) { return clear_float_negate(a); }};
constexpr UnaryFloat kAbsolute{float_absolute,
                               [](FloatValue a, FloatFormat) { return clear_float_absolute(a); }};

TEST(FloatComparison, AllPairsOfASmallFormat) {
  const FloatFormat f{4, 3};
  const Pairs pairs = all_pairs(f);
  expect_relations(pairs, f);
  expect_equals_twin(kMaximum, pairs, f);
  for (const UnaryFloat& operation : {kRelu, kNegate, kAbsolute}) {
    expect_equals_twin(operation, pairs.a, f);
  }
}

TEST(FloatComparison, RandomPairs) {
  for (const FloatFormat f :
       {kFloat32, FloatFormat{8, 7}, FloatFormat{5, 10}, FloatFormat{8, 27}, FloatFormat{11, 31}}) {
    const Pairs pairs = random_pairs(10000, f);
    expect_relations(pairs, f);
    expect_equals_twin(kMaximum, pairs, f);
    expect_equals_twin(kRelu, pairs.a, f);
  }
  const Pairs pairs = random_pairs(500, kFloat32);
  expect_relations(pairs, kFloat32, {false, 4});
  expect_equals_twin(kMaximum, pairs, kFloat32, {false, 4});
  expect_equals_twin(kRelu, pairs.a, kFloat32, {false, 4});
}

}  // namespace
}  // namespace privml::floating
