// SPDX-License-Identifier: Apache-2.0
#include "functions/float/selection.h"

#include "functions/float/testing/functions.h"

namespace privml::floating {
namespace {

using namespace floating::testing;
using namespace twopc::testing;

void expect_selected(const Values& values, FloatFormat f, const OtKind& ot = {}) {
  const i64 n = std::ssize(values);
  std::mt19937_64 random(14);
  std::vector<u8> bits(n);
  Both<std::vector<u8>> shares{std::vector<u8>(n), std::vector<u8>(n)};
  for (i64 i = 0; i < n; ++i) {
    bits[i] = random() & 1;
    shares[0][i] = random() & 1;
    shares[1][i] = shares[0][i] ^ bits[i];
  }
  const Values results = reconstruct_floats(
      results_of(float_select(f), n, ot, shares, share_floats(values, f, 13)), f);
  for (i64 i = 0; i < n; ++i) ASSERT_EQ(results[i], bits[i] ? values[i] : float_zero(f));
}

TEST(FloatSelect, EveryValueOfASmallFormat) {
  const FloatFormat f{4, 3};
  Values values;
  for (int repeat = 0; repeat < 8; ++repeat) {
    for_all_values(f, [&](FloatValue v) { values.push_back(v); });
  }
  expect_selected(values, f);
}

TEST(FloatSelect, RandomValuesOfUsualFormats) {
  for (const FloatFormat f : {FloatFormat{8, 23}, FloatFormat{8, 7}, FloatFormat{11, 48}}) {
    expect_selected(random_pairs(2000, f, 15).a, f, {false, 4});
  }
}

}  // namespace
}  // namespace privml::floating
