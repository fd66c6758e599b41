// SPDX-License-Identifier: Apache-2.0
#include "twopc/comparison_plan.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace privml {
namespace {

constexpr int kDigitBits = 4;
constexpr int kWordBits = 6;  // 2^6 message bits fill a word

// How many bits beyond kDigitBits the lowest digit and the others may take.
struct Slack {
  int lowest;
  int others;
};

// A digit of which one bit is asked may fill its word. One bit more in each of a few other digits
// is cheaper than another level of the tree.
Slack slack(bool greater, bool lowest_equality) {
  if (!greater) return {kWordBits - kDigitBits, kWordBits - kDigitBits};
  return {kWordBits - kDigitBits - (lowest_equality ? 1 : 0), 1};
}

int count_digits(int bits, Slack spare) {
  const int count = std::max(1, static_cast<int>(ceil_div(bits - spare.lowest, kDigitBits)));
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(count)));
  const int excess = bits - kDigitBits * power;
  const bool fits = excess <= kDigitBits && excess <= spare.lowest + (power - 1) * spare.others;
  return fits ? power : count;
}

void append_digits(std::vector<Digit>& digits, int offset, int bits, bool greater,
                   bool lowest_equality) {
  const Slack spare = slack(greater, lowest_equality);
  const int count = count_digits(bits, spare);
  int excess = bits - kDigitBits * count;
  for (int i = 0; i < count; ++i) {
    int size = kDigitBits;
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

ComparisonPlan plan_comparison(const ComparisonShape& shape) {
  expect(shape.bits >= 1 && shape.bits <= 64, "comparison: bits must be in 1..64");
  expect(shape.split >= 0 && shape.split < shape.bits, "comparison: split must be below bits");
  expect(shape.greater || shape.equality, "comparison: nothing is asked");
  ComparisonPlan plan;
  std::vector<int> low, high;
  if (shape.split > 0) append_digits(plan.digits, 0, shape.split, shape.greater, shape.equality);
  const int low_count = static_cast<int>(plan.digits.size());
  append_digits(plan.digits, shape.split, shape.bits - shape.split, shape.greater,
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

}  // namespace privml
