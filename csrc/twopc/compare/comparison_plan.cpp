// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/comparison_plan.h"

#include <algorithm>

#include "base/error.h"

namespace privml::twopc {
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

int power_below(int count, int radix) {
  int power = 1;
  while (power * radix <= count) power *= radix;
  return power;
}

int count_digits(int bits, int digit_bits, Slack spare, int radix) {
  const int count = std::max(1, static_cast<int>(ceil_div(bits - spare.lowest, digit_bits)));
  const int power = power_below(count, radix);
  const int excess = bits - digit_bits * power;
  const bool fits = excess <= digit_bits && excess <= spare.lowest + (power - 1) * spare.others;
  return fits ? power : count;
}

std::vector<int> usual_sizes(int bits, int digit_bits, int radix, bool greater,
                             bool lowest_equality) {
  const Slack spare = slack(digit_bits, greater, lowest_equality);
  std::vector<int> sizes(count_digits(bits, digit_bits, spare, radix), digit_bits);
  int excess = bits - digit_bits * static_cast<int>(sizes.size());
  if (excess < 0) sizes.back() += excess;
  for (std::size_t i = 0; i < sizes.size() && excess > 0; ++i) {
    const int taken = std::min(excess, i == 0 ? spare.lowest : spare.others);
    sizes[i] += taken;
    excess -= taken;
  }
  return sizes;
}

// As even as they can be; a lowest digit with messages of half the size is one bit larger.
std::vector<int> even_sizes(int bits, int count, bool greater, bool lowest_equality) {
  const int more = greater && !lowest_equality ? 1 : 0;
  std::vector<int> sizes(count, (bits - more) / count);
  for (int i = 0; i < (bits - more) % count; ++i) ++sizes[count - 1 - i];
  sizes[0] += more;
  return sizes;
}

void append_digits(std::vector<Digit>& digits, const std::vector<int>& sizes, bool greater,
                   bool lowest_equality) {
  int offset = digits.empty() ? 0 : digits.back().offset + digits.back().bits;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    digits.push_back({offset, sizes[i], greater, i > 0 || lowest_equality});
    offset += sizes[i];
  }
}

int levels_for(int count, int radix) {
  int levels = 0;
  for (; count > 1; count = static_cast<int>(ceil_div(count, radix))) ++levels;
  return levels;
}

int power_of(int radix, int exponent) {
  int power = 1;
  for (; exponent > 0; --exponent) power *= radix;
  return power;
}

// How many joins of three make at most `most` blocks of `count` together with joins of two: few,
// for they cost more.
int joins_of_three(int count, int most) {
  int threes = 0;
  while (3 * (threes + 1) <= count && count - 2 * threes - (count - 3 * threes) / 2 > most)
    ++threes;
  return threes;
}

// Joins neighbours, three of them where `radix` is 3 and else more than `most` blocks would remain;
// a block is known by its highest digit.
std::vector<int> join_neighbours(const std::vector<int>& blocks, Join wanted, int radix, int most,
                                 std::vector<Join>& level) {
  const int count = static_cast<int>(blocks.size());
  const int threes = radix == 3 ? joins_of_three(count, most) : 0;
  std::vector<int> joined;
  int next = 0;
  while (next + 1 < count) {
    const bool three = next < 3 * threes;
    const int high = next + (three ? 2 : 1);
    level.push_back({blocks[high], blocks[next], wanted.greater, next > 0 || wanted.equality,
                     three ? blocks[next + 1] : -1});
    joined.push_back(blocks[high]);
    next = high + 1;
  }
  if (next < count) joined.push_back(blocks[next]);
  return joined;
}

// sizes(bits, lowest_equality) are those of the digits of the low part, if there is one, and of the
// others.
template <class Sizes>
ComparisonPlan plan_with_sizes(const ComparisonShape& shape, int radix, Sizes&& sizes) {
  expect(shape.bits >= 1 && shape.bits <= 64, "comparison: bits must be in 1..64");
  expect(shape.split >= 0 && shape.split < shape.bits, "comparison: split must be below bits");
  expect(shape.greater || shape.equality, "comparison: nothing is asked");
  ComparisonPlan plan;
  std::vector<int> low, high;
  if (shape.split > 0)
    append_digits(plan.digits, sizes(shape.split, shape.equality), shape.greater, shape.equality);
  const int low_count = static_cast<int>(plan.digits.size());
  const bool equality = shape.split > 0 || shape.equality;
  append_digits(plan.digits, sizes(shape.bits - shape.split, equality), shape.greater, equality);
  const int count = static_cast<int>(plan.digits.size());
  for (int d = 0; d < low_count; ++d) low.push_back(d);
  for (int d = low_count; d < count; ++d) high.push_back(d);
  // The low part becomes one block first; from then on it is the lowest block of the whole.
  const int high_count = count - low_count, low_levels = levels_for(low_count, radix);
  const int high_left = static_cast<int>(ceil_div(high_count, power_of(radix, low_levels)));
  int left = low_levels + levels_for(high_left + (low_count > 0 ? 1 : 0), radix);
  while (low.size() + high.size() > 1) {
    std::vector<Join>& level = plan.levels.emplace_back();
    const int most = power_of(radix, --left);
    const Join wanted{0, 0, shape.greater, shape.equality};
    if (low.size() <= 1) {
      low.insert(low.end(), high.begin(), high.end());
      high = join_neighbours(low, wanted, radix, most, level);
      low.clear();
    } else {
      const int after = levels_for(high_left + 1, radix);  // levels of the whole
      const int parts = power_of(radix, left - after);
      low = join_neighbours(low, wanted, radix, parts, level);
      high = join_neighbours(high, {0, 0, shape.greater, true}, radix, most - parts, level);
    }
  }
  plan.low_root = low_count - 1;
  plan.root = count - 1;
  return plan;
}

}  // namespace

ComparisonPlan plan_with_digits(const ComparisonShape& shape, int digit_bits, int radix) {
  return plan_with_sizes(shape, radix, [&](int bits, bool lowest_equality) {
    return usual_sizes(bits, digit_bits, radix, shape.greater, lowest_equality);
  });
}

ComparisonPlan plan_with_even_digits(const ComparisonShape& shape, int half_bits, bool balanced,
                                     int radix) {
  return plan_with_sizes(shape, radix, [&](int bits, bool lowest_equality) {
    const int count = static_cast<int>(ceil_div(2 * bits, half_bits));
    const int power = power_below(count, radix);
    const bool fits = balanced && bits <= (kLargestDigit - 1) * power;
    return even_sizes(bits, fits ? power : count, shape.greater, lowest_equality);
  });
}

double plan_bits(const ComparisonPlan& plan, ComparisonPrices prices) {
  const double price = prices.correlation + kComputingBits;
  double bits = prices.level * static_cast<double>(plan.levels.size());
  // A choice bit per correlation, then the messages.
  for (const Digit& digit : plan.digits) {
    bits += digit.bits * (price + 1) + digit.word_bits();
  }
  // A triple takes a correlation of each direction; each party opens the common operand and the
  // others.
  for (const std::vector<Join>& level : plan.levels) {
    for (const Join& join : level) {
      const int last = (join.greater ? 1 : 0) + (join.equality ? 1 : 0);
      bits += 2 * price + 2 * (1 + last);
      if (!join.of_three()) continue;
      bits += 2 * price + 2 * (1 + (join.greater ? 1 : 0) + 2 * last);  // bit_chains.h
    }
  }
  return bits;
}

ComparisonPlan plan_comparison(const ComparisonShape& shape, ComparisonPrices prices) {
  ComparisonPlan best = plan_with_digits(shape, kUsualDigit);
  double fewest = plan_bits(best, prices);
  const auto consider = [&](ComparisonPlan plan) {
    const double bits = plan_bits(plan, prices);
    if (bits >= fewest) return;
    best = std::move(plan);
    fewest = bits;
  };
  for (int radix = 2; radix <= (prices.threes ? 3 : 2); ++radix) {
    for (int digit_bits = 2; digit_bits <= kLargestDigit; ++digit_bits)
      consider(plan_with_digits(shape, digit_bits, radix));
    for (int half_bits = 6; half_bits <= 2 * kLargestDigit; ++half_bits)
      consider(plan_with_even_digits(shape, half_bits, false, radix));
    consider(plan_with_even_digits(shape, 6, true, radix));
  }
  return best;
}

}  // namespace privml::twopc
