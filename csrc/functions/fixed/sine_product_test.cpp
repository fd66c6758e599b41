// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/sine_product.h"

#include <gtest/gtest.h>

#include <cmath>

#include "functions/fixed/testing/functions.h"

namespace privml::fixed {
namespace {

using namespace fixed::testing;
using namespace twopc::testing;

const TestedFunction kSin{sin_product, clear_sin_product};
const TestedFunction kCos{cos_product, clear_cos_product};

void check(const TestedFunction& function, bool cosine, const Numbers& x, FormatPair formats,
           const OtKind& kind = {}) {
  const auto [in, out] = formats;
  SCOPED_TRACE(::testing::Message()
               << in.bits << "." << in.scale << " -> " << out.bits << "." << out.scale);
  Outcome outcome;
  const Numbers y = secure(function, x, formats, kind, &outcome),
                twin = clear(function, x, formats);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double angle = std::ldexp(static_cast<double>(x[i]), -in.scale);
    const double exact = std::ldexp(cosine ? std::cos(angle) : std::sin(angle), out.scale);
    ASSERT_LE(std::abs(static_cast<double>(y[i]) - exact), 0.85) << x[i];
    ASSERT_LE(std::abs(y[i] - twin[i]), 1) << x[i];
  }
  expect_cost_equals(outcome, [&](ot::CostMeter& meter) {
    cost_function(meter, function.function, std::ssize(x), in, out);
  });
}

TEST(SineProduct, EveryArgumentOf16Bits) {
  check(kSin, false, every_number(16), {{16, 12}, {16, 12}});
  check(kCos, true, every_number(16), {{16, 8}, {16, 12}});
}

TEST(SineProduct, OtherFormats) {
  for (const FormatPair formats :
       {FormatPair{{21, 12}, {21, 12}}, FormatPair{{37 - 5, 12}, {32, 12}},
        FormatPair{{32, 20}, {32, 20}}, FormatPair{{8, 4}, {10, 8}},
        FormatPair{{30, 28}, {32, 30}}}) {
    const i64 most = i64{1} << (formats.in.bits - 1);
    const Numbers x = random_numbers(3000, -most, most - 1);
    check(kSin, false, x, formats, {false, 4});
    check(kCos, true, x, formats);
  }
}

TEST(SineProduct, CostsEqualTheLedgerAcrossChunks) {
  for (i64 n : {i64{0}, i64{1}, i64{2}, kFunctionChunk + 1})
    check(kSin, false, random_numbers(n, -(i64{1} << 20), (i64{1} << 20) - 1),
          {{21, 12}, {21, 12}});
}

TEST(SineProduct, WireTraces) {
  const Numbers x = random_numbers(100, -(i64{1} << 20), (i64{1} << 20) - 1);
  EXPECT_EQ(wire_trace(kSin, x, {{21, 12}, {21, 12}}), "ac2c867fa7898db7");
  EXPECT_EQ(wire_trace(kCos, x, {{21, 12}, {21, 12}}), "696a6128f5a499fb");
}

}  // namespace
}  // namespace privml::fixed
