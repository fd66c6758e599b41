// SPDX-License-Identifier: Apache-2.0
#include "functions/float/addition.h"

#include "functions/float/testing/functions.h"

namespace privml::floating {
namespace {

using namespace floating::testing;

constexpr BinaryFloat kAdd{float_add, clear_float_add};
constexpr BinaryFloat kSubtract{float_subtract, clear_float_subtract};

TEST(FloatAddition, AllPairsOfASmallFormat) {
  for (const BinaryFloat& operation : {kAdd, kSubtract}) {
    expect_equals_twin(operation, all_pairs({4, 3}), {4, 3});
  }
}

TEST(FloatAddition, RandomPairs) {
  for (const FloatFormat f : {kFloat32, FloatFormat{8, 7}, FloatFormat{8, 10}, FloatFormat{5, 10},
                              FloatFormat{8, 27}, FloatFormat{11, 30}}) {
    const Pairs pairs = random_pairs(10000, f);
    for (const BinaryFloat& operation : {kAdd, kSubtract}) {
      expect_equals_twin(operation, pairs, f);
    }
  }
  for (const BinaryFloat& operation : {kAdd, kSubtract}) {
    expect_equals_twin(operation, random_pairs(500, kFloat32), kFloat32, {false, 4});
  }
}

TEST(FloatAddition, NearThePowersOfTwo) {
  Pairs pairs;
  const auto add = [&](float a, float b) {
    pairs.a.push_back(value_from_single_bits(std::bit_cast<u32>(a)));
    pairs.b.push_back(value_from_single_bits(std::bit_cast<u32>(b)));
  };
  add(1, -0x1.8p-25F);
  add(1, -0x1.000002p-25F);
  add(1, -0x1p-25F);
  add(0x1.8p-25F, -1);
  add(-3, 3);
  add(-0.0F, 0.0F);
  add(0.0F, -0.0F);
  add(-0.0F, -0.0F);
  add(0x1.fffffep127F, 0x1p103F);
  expect_equals_twin(kAdd, pairs, kFloat32);
}

}  // namespace
}  // namespace privml::floating
