// SPDX-License-Identifier: Apache-2.0
#include "functions/float/division.h"

#include "functions/float/testing/functions.h"

namespace privml::floating {
namespace {

using namespace floating::testing;

constexpr BinaryFloat kDivide{float_divide, clear_float_divide, cost_float_divide};
constexpr BinaryFloat kSqrt{
    [](ot::Party& party, FloatView a, FloatView, FloatFormat f, FloatSpan out) {
      float_sqrt(party, a, f, out);
    },
    [](FloatValue a, FloatValue, FloatFormat f) { return clear_float_sqrt(a, f); },
    cost_float_sqrt};

TEST(FloatDivision, AllPairsOfASmallFormat) {
  expect_equals_twin(kDivide, all_pairs({4, 3}), {4, 3});
  expect_equals_twin(kSqrt, all_pairs({4, 3}), {4, 3});
}

TEST(FloatDivision, RandomPairs) {
  for (const FloatFormat f : {kFloat32, FloatFormat{8, 7}, FloatFormat{8, 10}, FloatFormat{5, 10},
                              FloatFormat{6, 11}, FloatFormat{8, 14}, FloatFormat{8, 27}}) {
    const Pairs pairs = random_pairs(10000, f);
    for (const BinaryFloat& operation : {kDivide, kSqrt}) {
      expect_equals_twin(operation, pairs, f);
    }
  }
  for (const BinaryFloat& operation : {kDivide, kSqrt}) {
    expect_equals_twin(operation, random_pairs(500, kFloat32), kFloat32, {false, 4});
  }
}

}  // namespace
}  // namespace privml::floating
