// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/comparison_plan.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace privml {
namespace {

constexpr int kUsualDigit = 4;
constexpr int kLargestDigit = 5;
constexpr int kWordBits = 6;  // 2^6 message bits fill a word

// How many bits beyond the usual size the lowest digit and the others may take.
struct Slack {
  int lowest;
  int others;
};

// A digit of which one bit is asked may fill its word. One bit more in each of a few other digits
// is cheaper than another level of the tree.
Slack slack(int digit_bits, bool greater, bool lowest_equality) {
  if (!greater) return {kWordBits - digit_bits, kWordBits - digit_bits};
  return {kWordBits - digit_bits - (lowest_equality ? 1 : 0),
          std::min(1, kLargestDigit - digit_bits)};
}

int count_digits(int bits, int digit_bits, Slack spare) {
  const int count = std::max(1, static_cast<int>(ceil_div(bits - spare.lowest, digit_bits)));
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(count)));
  const int excess = bits - digit_bits * power;
  const bool fits = excess <= digit_bits && excess <= spare.lowest + (power - 1) * spare.others;
  return fits ? power : count;
}

void append_digits(std::vector<Digit>& digits, int offset, int bits, int digit_bits, bool greater,
                   bool lowest_equality) {
  const Slack spare = slack(digit_bits, greater, lowest_equality);
  const int count = count_digits(bits, digit_bits, spare);
  int excess = bits - digit_bits * count;
  for (int i = 0; i < count; ++i) {
    int size = digit_bits;
    if (excess < 0 && i == count - 1) {
      size += excess;
    } else if (excess > 0) {
      const int taken = std::min(excess, i == 0 ? spare.lowest : spare.others);
      size += taken;
      excess -= taken;
    }
    digits.push_back({offset, size, greater, i > 0 || lowest_equality});
    offset += size;
  }
}

// Joins neighbours; a block is known by its highest digit.
std::vector<int> join_neighbours(const std::vector<int>& blocks, bool greater, bool lowest_equality,
                                 std::vector<Join>& level) {
  std::vector<int> joined;
  for (std::size_t i = 0; i + 1 < blocks.size(); i += 2) {
    level.push_back({blocks[i + 1], blocks[i], greater, i > 0 || lowest_equality});
    joined.push_back(blocks[i + 1]);
  }
  if (blocks.size() % 2 == 1) joined.push_back(blocks.back());
  return joined;
}

}  // namespace

ComparisonPlan plan_with_digits(const ComparisonShape& shape, int digit_bits) {
  expect(shape.bits >= 1 && shape.bits <= 64, "comparison: bits must be in 1..64");
  expect(shape.split >= 0 && shape.split < shape.bits, "comparison: split must be below bits");
  expect(shape.greater || shape.equality, "comparison: nothing is asked");
  ComparisonPlan plan;
  std::vector<int> low, high;
  if (shape.split > 0)
    append_digits(plan.digits, 0, shape.split, digit_bits, shape.greater, shape.equality);
  const int low_count = static_cast<int>(plan.digits.size());
  append_digits(plan.digits, shape.split, shape.bits - shape.split, digit_bits, shape.greater,
                shape.split > 0 || shape.equality);
  const int count = static_cast<int>(plan.digits.size());
  for (int d = 0; d < low_count; ++d) low.push_back(d);
  for (int d = low_count; d < count; ++d) high.push_back(d);
  // The low part becomes one block first; from then on it is the lowest block of the whole.
  while (low.size() + high.size() > 1) {
    std::vector<Join>& level = plan.levels.emplace_back();
    if (low.size() <= 1) {
      low.insert(low.end(), high.begin(), high.end());
      high = join_neighbours(low, shape.greater, shape.equality, level);
      low.clear();
    } else {
      low = join_neighbours(low, shape.greater, shape.equality, level);
      high = join_neighbours(high, shape.greater, true, level);
    }
  }
  plan.low_root = low_count - 1;
  plan.root = count - 1;
  return plan;
}

double plan_bits(const ComparisonPlan& plan, double correlation_bits) {
  const double price = correlation_bits + kComputingBits;
  double bits = kLevelBits * static_cast<double>(plan.levels.size());
  // A choice bit per correlation, then the messages.
  for (const Digit& digit : plan.digits) {
    bits += digit.bits * (price + 1) + digit.word_bits();
  }
  // A triple takes a correlation of each direction; each party opens the common operand and the
  // others.
  for (const std::vector<Join>& level : plan.levels) {
    for (const Join& join : level) {
      bits += 2 * price + 2 * (1 + (join.greater ? 1 : 0) + (join.equality ? 1 : 0));
    }
  }
  return bits;
}

ComparisonPlan plan_comparison(const ComparisonShape& shape, double correlation_bits) {
  ComparisonPlan best = plan_with_digits(shape, kUsualDigit);
  for (int digit_bits : {2, 3, kLargestDigit}) {
    ComparisonPlan plan = plan_with_digits(shape, digit_bits);
    if (plan_bits(plan, correlation_bits) < plan_bits(best, correlation_bits)) best = plan;
  }
  return best;
}

}  // namespace privml
