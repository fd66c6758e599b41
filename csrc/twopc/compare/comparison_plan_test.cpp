// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/comparison_plan.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"

namespace privml::twopc {
namespace {

// The range of bits that each state covers after all joins; fails where a join is not of neighbours
// or needs an equality that its operands lack.
void check_plan(const ComparisonShape& shape, const ComparisonPlan& plan) {
  SCOPED_TRACE(::testing::Message() << shape.bits << " bits, split " << shape.split << ", equality "
                                    << shape.equality << ", greater " << shape.greater);
  struct Range {
    int begin, end;
    bool equality;
  };
  std::vector<Range> ranges;
  int offset = 0;
  for (const Digit& digit : plan.digits) {
    ASSERT_EQ(digit.offset, offset);
    ASSERT_GE(digit.bits, 1);
    ASSERT_LE(digit.word_bits(), 64);
    ASSERT_EQ(digit.greater, shape.greater);
    offset += digit.bits;
    ranges.push_back({digit.offset, offset, digit.equality});
  }
  ASSERT_EQ(offset, shape.bits);
  bool found_split = shape.split == 0;
  const auto look = [&] {
    if (found_split || ranges[plan.low_root].begin != 0) return;
    found_split = ranges[plan.low_root].end == shape.split;
  };
  look();
  for (const auto& level : plan.levels) {
    ASSERT_FALSE(level.empty());
    std::set<int> used;
    for (const Join& join : level) {
      ASSERT_TRUE(used.insert(join.high).second && used.insert(join.low).second);
      if (join.of_three()) {
        ASSERT_TRUE(used.insert(join.middle).second);
        ASSERT_EQ(ranges[join.middle].end, ranges[join.high].begin);
        ASSERT_TRUE(ranges[join.middle].equality);
      }
      const int above = join.of_three() ? join.middle : join.high;
      ASSERT_EQ(ranges[join.low].end, ranges[above].begin);
      ASSERT_TRUE(ranges[join.high].equality);
      ASSERT_TRUE(!join.equality || ranges[join.low].equality);
      ASSERT_NE(join.high, shape.split > 0 ? plan.low_root * (found_split ? 1 : -1) : -1);
      ranges[join.high] = {ranges[join.low].begin, ranges[join.high].end, join.equality};
    }
    look();
  }
  EXPECT_TRUE(found_split);
  EXPECT_EQ(ranges[plan.root].begin, 0);
  EXPECT_EQ(ranges[plan.root].end, shape.bits);
  EXPECT_TRUE(!shape.equality || ranges[plan.root].equality);
}

TEST(ComparisonPlan, CoversEveryWidthAndSplit) {
  for (int bits = 1; bits <= 64; ++bits) {
    for (int split = 0; split < bits; ++split) {
      for (const auto& [equality, greater] :
           {std::pair{false, true}, {true, true}, {true, false}}) {
        const ComparisonShape shape{bits, split, equality, greater};
        for (int radix : {2, 3}) {
          for (int digit : {2, 3, 4, 5}) check_plan(shape, plan_with_digits(shape, digit, radix));
          for (int half : {6, 7, 8, 9, 10})
            for (bool balanced : {false, true})
              check_plan(shape, plan_with_even_digits(shape, half, balanced, radix));
        }
      }
    }
  }
}

TEST(ComparisonPlan, DepthOfCommonWidths) {
  EXPECT_EQ(plan_comparison({31}, {31}).levels.size(), 3U);
  EXPECT_EQ(plan_comparison({32}, {31}).levels.size(), 3U);
  EXPECT_EQ(plan_comparison({36}, {31}).levels.size(), 3U);
  EXPECT_EQ(plan_comparison({64}, {31}).levels.size(), 4U);
  EXPECT_EQ(plan_comparison({32, 16}, {31}).levels.size(), 3U);
  EXPECT_EQ(plan_comparison({6}, {31}).levels.size(), 0U);
}

// Over a slow link three digits are joined at once, and digits are as large as saves a level.
TEST(ComparisonPlan, FewerLevelsOverASlowLink) {
  struct {
    double correlation_bits = 0.75;
    i64 chunk_factor = 8;
  } planner;
  const auto levels = [&](const ComparisonShape& shape, i64 n) {
    return plan_comparison(shape, comparison_prices(planner, n)).levels.size();
  };
  EXPECT_EQ(levels({6}, 1), 0U);
  EXPECT_EQ(levels({16}, 1), 1U);
  EXPECT_EQ(levels({32}, 1), 2U);
  EXPECT_EQ(levels({46}, 1), 2U);
  EXPECT_EQ(levels({64}, 1), 3U);
  EXPECT_EQ(levels({21, 9}, 1), 2U);
  EXPECT_LE(levels({32}, 1 << 20), 2U);
}

// Over a fast link a level is worth few bits if many instances share its messages.
TEST(ComparisonPlan, MoreLevelsOfManyInstances) {
  struct {
    double correlation_bits = 0.75;
    i64 chunk_factor = 1;
  } planner;
  const auto levels = [&](int bits, i64 n) {
    return plan_comparison({bits}, comparison_prices(planner, n)).levels.size();
  };
  EXPECT_EQ(levels(18, 1), 2U);
  EXPECT_EQ(levels(18, 1 << 16), 3U);
  EXPECT_EQ(levels(32, 1), 3U);
  EXPECT_EQ(levels(32, 1 << 16), 4U);
  for (int bits = 1; bits <= 64; ++bits) EXPECT_LE(levels(bits, 1), levels(bits, 1 << 16)) << bits;
  EXPECT_EQ(comparison_prices(planner, 0).level, kLevelBits);
}

// The more a correlation costs, the larger the digits: fewer triples, longer messages.
TEST(ComparisonPlan, DigitsGrowWithThePriceOfCorrelations) {
  const auto digits = [](int bits, double price) {
    return plan_comparison({bits}, {price}).digits.size();
  };
  EXPECT_EQ(digits(32, 0.75), 8U);
  EXPECT_EQ(digits(32, 15), 8U);
  EXPECT_EQ(digits(32, 127), 7U);
  EXPECT_EQ(digits(64, 0.75), 16U);
  EXPECT_EQ(digits(64, 127), 13U);
  for (int bits = 1; bits <= 64; ++bits) {
    for (double price : {0.0, 0.75, 15.0, 31.0, 63.0, 127.0}) {
      const double chosen = plan_bits(plan_comparison({bits}, {price}), {price});
      for (int digit : {2, 3, 4, 5}) {
        EXPECT_LE(chosen, plan_bits(plan_with_digits({bits}, digit), {price}))
            << bits << " " << price;
      }
    }
  }
}

std::vector<int> digit_sizes(int bits, double price) {
  std::vector<int> sizes;
  for (const Digit& digit : plan_comparison({bits}, {price}).digits) sizes.push_back(digit.bits);
  return sizes;
}

// Four digits of three bits take 26 bits fewer than three of four, for one join more.
TEST(ComparisonPlan, EvenDigitsWhereThatIsCheaper) {
  EXPECT_EQ(digit_sizes(12, 0.75), (std::vector{3, 3, 3, 3}));
  EXPECT_EQ(digit_sizes(12, 127), (std::vector{4, 4, 4}));
  EXPECT_EQ(digit_sizes(24, 0.75), (std::vector{3, 3, 3, 3, 3, 3, 3, 3}));
  EXPECT_EQ(digit_sizes(15, 0.75), (std::vector{4, 4, 4, 3}));
}

// No mix of digits with as many joins is cheaper by more than a level of the tree.
TEST(ComparisonPlan, NoEvenMixIsCheaper) {
  for (double price : {0.75, 15.0, 31.0, 127.0})
    for (int bits = 1; bits <= 64; ++bits) {
      const double chosen = plan_bits(plan_comparison({bits}, {price}), {price});
      for (int half = 4; half <= 10; ++half)
        for (bool balanced : {false, true})
          EXPECT_LE(chosen,
                    plan_bits(plan_with_even_digits({bits}, half, balanced), {price}) * 1.03)
              << bits << " " << half << " " << price;
    }
}

TEST(ComparisonPlan, RefusesWhatItCannotCompare) {
  EXPECT_THROW(plan_comparison({0}, {31}), InvalidArgument);
  EXPECT_THROW(plan_comparison({65}, {31}), InvalidArgument);
  EXPECT_THROW(plan_comparison({8, 8}, {31}), InvalidArgument);
  EXPECT_THROW(plan_comparison({8, 0, false, false}, {31}), InvalidArgument);
}

}  // namespace
}  // namespace privml::twopc
