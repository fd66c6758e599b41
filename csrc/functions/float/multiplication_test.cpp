// SPDX-License-Identifier: Apache-2.0
#include "functions/float/multiplication.h"

#include "functions/float/testing/functions.h"

namespace privml::floating {
namespace {

using namespace floating::testing;

constexpr BinaryFloat kMultiply{float_multiply, clear_float_multiply};

TEST(FloatMultiplication, AllPairsOfASmallFormat) {
  expect_equals_twin(kMultiply, all_pairs({4, 3}), {4, 3});
}

TEST(FloatMultiplication, RandomPairs) {
  for (const FloatFormat f : {kFloat32, FloatFormat{8, 7}, FloatFormat{8, 10}, FloatFormat{5, 10},
                              FloatFormat{8, 27}, FloatFormat{11, 31}}) {
    expect_equals_twin(kMultiply, random_pairs(20000, f), f);
  }
  expect_equals_twin(kMultiply, random_pairs(1000, kFloat32), kFloat32, {false, 4});
}

}  // namespace
}  // namespace privml::floating
