// SPDX-License-Identifier: Apache-2.0
#include "functions/float/division.h"

#include "functions/float/testing/functions.h"

namespace privml::floating {
namespace {

using namespace floating::testing;

constexpr BinaryFloat kDivide{float_divide, clear_float_divide};
constexpr UnaryFloat kSqrt{float_sqrt, clear_float_sqrt};

TEST(FloatDivision, AllPairsOfASmallFormat) {
  expect_equals_twin(kDivide, all_pairs({4, 3}), {4, 3});
  expect_equals_twin(kSqrt, all_pairs({4, 3}).a, {4, 3});
}

TEST(FloatDivision, RandomPairs) {
  for (const FloatFormat f : {kFloat32, FloatFormat{8, 7}, FloatFormat{8, 10}, FloatFormat{5, 10},
                              FloatFormat{6, 11}, FloatFormat{8, 14}, FloatFormat{8, 27}}) {
    const Pairs pairs = random_pairs(10000, f);
    expect_equals_twin(kDivide, pairs, f);
    expect_equals_twin(kSqrt, pairs.a, f);
  }
  const Pairs pairs = random_pairs(500, kFloat32);
  expect_equals_twin(kDivide, pairs, kFloat32, {false, 4});
  expect_equals_twin(kSqrt, pairs.a, kFloat32, {false, 4});
}

}  // namespace
}  // namespace privml::floating
