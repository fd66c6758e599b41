// SPDX-License-Identifier: Apache-2.0
// exponential.h's forms, exponential_product.h and exponential_spline.h.
#include <gtest/gtest.h>

#include <cmath>

#include "functions/fixed/exponential.h"
#include "functions/fixed/exponential_product.h"
#include "functions/fixed/exponential_spline.h"
#include "functions/fixed/testing/functions.h"

namespace privml::fixed {
namespace {

using namespace fixed::testing;
using namespace twopc::testing;

const TestedFunction kExact{exp_negative_exact, clear_exp_negative_exact};
const TestedFunction kByCiphertexts{exp_negative_exact, clear_exp_negative_exact, true};
const TestedFunction kProduct{exp_negative_product, clear_exp_negative_product};
const TestedFunction kSpline{exp_negative_spline, clear_exp_negative_spline};

constexpr FormatPair kPaper{{16, 12}, {16, 12}}, kWide{{32, 12}, {32, 12}};

double exact_value(i64 x, FormatPair formats) {
  return std::ldexp(std::exp(std::ldexp(static_cast<double>(x), -formats.in.scale)),
                    formats.out.scale);
}

double largest_error(const Numbers& x, const Numbers& y, FormatPair formats) {
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(y[i]) - exact_value(x[i], formats)));
  return largest;
}

// Arguments at the boundaries of the forms, and random ones of every size.
Numbers arguments(FixedFormat in) {
  Numbers x{0, -1, -2, i64{-1} << (in.bits - 1)};
  for (int bit = 1; bit < in.bits - 1; ++bit)
    for (i64 near : {-1, 0, 1}) x.push_back((i64{-1} << bit) + near);
  for (int bits = 2; bits < in.bits; ++bits)
    for (i64 v : random_numbers(200, i64{-1} << bits, 0, bits)) x.push_back(v);
  for (i64& v : x) v = std::max(v, i64{-1} << (in.bits - 1));
  return x;
}

TEST(ExponentialForms, ExactProductEqualsItsTwinOnEveryArgument) {
  Numbers x = all_from(-32768, 0);
  for (const FixedFormat format : {FixedFormat{16, 12}, FixedFormat{16, 8}}) {
    const FormatPair formats{format, format};
    expect_equals_twin(kExact, x, formats);
    EXPECT_LE(largest_error(x, clear(kExact, x, formats), formats), 0.71);
  }
  expect_equals_twin(kExact, arguments({32, 12}), kWide, {false, 4});
  for (const FormatPair formats : {FormatPair{{10, 6}, {32, 10}}, FormatPair{{37, 12}, {24, 20}},
                                   FormatPair{{64, 16}, {32, 16}}, FormatPair{{16, 12}, {24, 22}},
                                   FormatPair{{32, 16}, {32, 16}}, FormatPair{{8, 3}, {16, 4}}}) {
    ASSERT_TRUE(has_exp_negative_exact(formats.in, formats.out));
    x = arguments(formats.in);
    expect_equals_twin(kExact, x, formats);
    EXPECT_LE(largest_error(x, clear(kExact, x, formats), formats), 0.71);
  }
  EXPECT_FALSE(has_exp_negative_exact({32, 24}, {32, 24}));
}

i64 cost_of(const TestedFunction& form, i64 n, FormatPair formats) {
  ot::CostMeter meter(ot::RcotCost{"ideal", 0, 1, 1});
  meter.ciphertexts = form.ciphertexts;
  cost_function(meter, form.function, n, formats.in, formats.out);
  return meter.bytes[0] + meter.bytes[1];
}

// Where a session may make ciphertexts, the same results by fewer bytes; where elements are few,
// transfers.
TEST(ExponentialForms, CiphertextsGiveTheSameResults) {
  Numbers x = all_from(-32768, 0);
  for (const FixedFormat format : {FixedFormat{16, 12}, FixedFormat{16, 8}})
    expect_equals_twin(kByCiphertexts, x, {format, format});
  for (const FormatPair formats :
       {FormatPair{{17, 12}, {31, 19}}, FormatPair{{33, 16}, {32, 20}},
        FormatPair{{64, 16}, {32, 16}}, FormatPair{{16, 12}, {24, 22}}, kWide}) {
    // Sanitizers see the same code with the first formats.
    if (privml::testing::kSanitized && formats.in.bits > 17) continue;
    const Numbers each = arguments(formats.in);
    x.clear();
    while (std::ssize(x) < kFunctionChunk + 5000) x.insert(x.end(), each.begin(), each.end());
    expect_equals_twin(kByCiphertexts, x, formats, {false, 4});
    EXPECT_LT(cost_of(kByCiphertexts, kFunctionChunk, formats) * 3,
              cost_of(kExact, kFunctionChunk, formats) * 2);
    EXPECT_EQ(cost_of(kByCiphertexts, 100, formats), cost_of(kExact, 100, formats));
  }
}

TEST(ExponentialForms, CostsEqualTheLedgerAcrossChunks) {
  for (i64 n : {i64{0}, i64{1}, i64{2}, kFunctionChunk + 1}) {
    const Numbers x = random_numbers(n, -(i64{1} << 31), 0);
    expect_equals_twin(kExact, x, kWide);
    expect_equals_twin(kSpline, x, kWide);
  }
}

TEST(ExponentialForms, OverASlowLink) {
  for (const TestedFunction& form : {kExact, kSpline})
    for (const FormatPair& formats : {FormatPair{{13, 8}, {20, 13}}, {{16, 12}, {16, 12}}})
      for (i64 n : {1, 2, 300})
        expect_equals_twin(form, random_numbers(n, -(i64{1} << (formats.in.bits - 1)), 0), formats,
                           {}, 8);
}

TEST(ExponentialForms, WireTraces) {
  const Numbers x = random_numbers(100, -(i64{1} << 16), 0);
  EXPECT_EQ(wire_trace(kExact, x, kWide), "3bfee2db660d0dc8");
  EXPECT_EQ(wire_trace(kProduct, x, kWide), "084567e4831c405c");
  EXPECT_EQ(wire_trace(kSpline, x, kWide), "57d880ea31e3167c");
}

TEST(ExponentialForms, TheCheapestFormHasEveryResultCertain) {
  EXPECT_EQ(cheapest_exponential_form({16, 12}, {16, 12}), ExponentialForm::exact);
  EXPECT_EQ(cheapest_exponential_form({32, 24}, {32, 24}), ExponentialForm::spline);
  EXPECT_EQ(cheapest_exponential_form({12, 4}, {8, 6}), ExponentialForm::spline);
}

TEST(ExponentialForms, SplineEqualsItsTwin) {
  const Numbers x = all_from(-32768, 0);
  expect_equals_twin(kSpline, x, kPaper);
  EXPECT_LE(largest_error(x, clear(kSpline, x, kPaper), kPaper), 1);
  for (const FormatPair formats :
       {kWide, FormatPair{{32, 16}, {32, 16}}, FormatPair{{24, 12}, {16, 10}},
        FormatPair{{32, 20}, {32, 20}}, FormatPair{{9, 3}, {20, 12}}}) {
    const Numbers some = arguments(formats.in);
    expect_equals_twin(kSpline, some, formats);
    EXPECT_LE(largest_error(some, clear(kSpline, some, formats), formats), 1);
  }
}

TEST(ExponentialForms, ProductStaysWithinThreeQuartersOfAUnit) {
  for (const FormatPair formats : {kPaper, kWide, FormatPair{{32, 16}, {32, 16}},
                                   FormatPair{{24, 12}, {16, 10}}, FormatPair{{32, 20}, {32, 20}},
                                   FormatPair{{9, 3}, {20, 12}}, FormatPair{{32, 26}, {32, 26}},
                                   FormatPair{{8, 0}, {8, 6}}, FormatPair{{32, 28}, {32, 30}}}) {
    SCOPED_TRACE(::testing::Message() << formats.in.bits << "." << formats.in.scale << " -> "
                                      << formats.out.bits << "." << formats.out.scale);
    const Numbers x = formats.in.bits == 16 ? all_from(-32768, 0) : arguments(formats.in);
    Outcome outcome;
    const Numbers y = secure(kProduct, x, formats, {}, &outcome),
                  twin = clear(kProduct, x, formats);
    EXPECT_LE(largest_error(x, y, formats), 0.75);
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_LE(std::abs(y[i] - twin[i]), 1) << x[i];
    expect_cost_equals(outcome, [&](ot::CostMeter& meter) {
      cost_function(meter, exp_negative_product, std::ssize(x), formats.in, formats.out);
    });
  }
}

}  // namespace
}  // namespace privml::fixed
