// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/comparison_plan.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"

namespace privml {
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
      ASSERT_EQ(ranges[join.low].end, ranges[join.high].begin);
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
        for (int digit : {2, 3, 4, 5}) check_plan(shape, plan_with_digits(shape, digit));
      }
    }
  }
}

TEST(ComparisonPlan, DepthOfCommonWidths) {
  EXPECT_EQ(plan_comparison({31}, 31).levels.size(), 3U);
  EXPECT_EQ(plan_comparison({32}, 31).levels.size(), 3U);
  EXPECT_EQ(plan_comparison({36}, 31).levels.size(), 3U);
  EXPECT_EQ(plan_comparison({64}, 31).levels.size(), 4U);
  EXPECT_EQ(plan_comparison({32, 16}, 31).levels.size(), 3U);
  EXPECT_EQ(plan_comparison({6}, 31).levels.size(), 0U);
}

// The more a correlation costs, the larger the digits: fewer triples, longer messages.
TEST(ComparisonPlan, DigitsGrowWithThePriceOfCorrelations) {
  const auto digits = [](int bits, double price) {
    return plan_comparison({bits}, price).digits.size();
  };
  EXPECT_EQ(digits(32, 0.75), 8U);
  EXPECT_EQ(digits(32, 15), 8U);
  EXPECT_EQ(digits(32, 127), 7U);
  EXPECT_EQ(digits(64, 0.75), 16U);
  EXPECT_EQ(digits(64, 127), 13U);
  for (int bits = 1; bits <= 64; ++bits) {
    for (double price : {0.0, 0.75, 15.0, 31.0, 63.0, 127.0}) {
      const double chosen = plan_bits(plan_comparison({bits}, price), price);
      for (int digit : {2, 3, 4, 5}) {
        EXPECT_LE(chosen, plan_bits(plan_with_digits({bits}, digit), price))
            << bits << " " << price;
      }
    }
  }
}

TEST(ComparisonPlan, RefusesWhatItCannotCompare) {
  EXPECT_THROW(plan_comparison({0}, 31), InvalidArgument);
  EXPECT_THROW(plan_comparison({65}, 31), InvalidArgument);
  EXPECT_THROW(plan_comparison({8, 8}, 31), InvalidArgument);
  EXPECT_THROW(plan_comparison({8, 0, false, false}, 31), InvalidArgument);
}

}  // namespace
}  // namespace privml
