// SPDX-License-Identifier: Apache-2.0
#include "fixmath/decay.h"

#include <algorithm>

#include "fixmath/exponential_table.h"
#include "twopc/digits.h"
#include "twopc/equality.h"
#include "twopc/lookup.h"
#include "twopc/multiplex.h"
#include "twopc/multiplication.h"
#include "twopc/truncation.h"

namespace privml {
namespace {

constexpr int kLargestDigit = 8;
constexpr int kMostPrecision = 31;  // products stay below 2^64

// Bits of `a` beyond which the value rounds to zero.
int vanishing_bits(const DecayShape& shape) {
  int bits = 1;
  while (bits < shape.bits &&
         exponential_fraction(u64{1} << bits, shape.scale) >> (63 - shape.out_scale) != 0)
    ++bits;
  return bits;
}

// Bits of a word: values up to 2^precision, and a top bit that is known to be 0.
int word_bits(const Decay& plan) { return plan.precision + 2; }

// What the product with digit i, counted down, drops: guard bits go with the last.
int dropped(const Decay& plan, int i) {
  return plan.precision + (i == 0 ? plan.precision - plan.out_scale : 0);
}

FactorFormat factor(const Decay& plan) { return {word_bits(plan), false, true}; }
int product_bits(const Decay& plan) { return 2 * word_bits(plan) - 2; }

int digit_width(const Decay& plan, int i) {
  return i + 1 < plan.digits() ? plan.digit_bits : plan.top_bits();
}

}  // namespace

Decay plan_decay(const DecayShape& shape) {
  Decay plan;
  plan.bits = shape.bits;
  plan.covered = std::min(shape.bits, std::max(vanishing_bits(shape), 2 * kLargestDigit));
  const int digits = static_cast<int>(ceil_div(plan.covered, kLargestDigit));
  const int guard = digits <= 2 ? 0 : digits - 2;
  plan.digit_bits = static_cast<int>(ceil_div(plan.covered, digits));
  plan.out_scale = shape.out_scale;
  plan.precision = std::max(shape.out_scale, std::min(shape.out_scale + guard, kMostPrecision));
  for (int i = 0; i < digits; ++i) {
    const int offset = i * plan.digit_bits;
    ExponentialTable table{std::min(plan.digit_bits, plan.covered - offset), offset, shape.scale,
                           plan.precision};
    if (i == 0) {
      table.start = shape.start;
      if (shape.below_one) table.most = low_mask(plan.precision);
    }
    plan.tables.push_back(exponential_table(table));
  }
  return plan;
}

void clear_decay(const Decay& plan, std::span<const u64> a, std::span<u64> out) {
  const int top = plan.digits() - 1;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const u64 value = a[k] & low_mask(plan.bits);
    const auto entry = [&](int i) {
      return plan.tables[i][(value >> (i * plan.digit_bits)) & low_mask(digit_width(plan, i))];
    };
    u64 product = entry(top);
    for (int i = top - 1; i >= 0; --i) product = (product * entry(i)) >> dropped(plan, i);
    out[k] = value >> plan.covered == 0 ? product : 0;
  }
}

void decay(Party& party, const Decay& plan, std::span<const u64> a, std::span<u64> out) {
  const i64 n = std::ssize(a);
  const int top = plan.digits() - 1, width = word_bits(plan);
  std::vector<u64> parts(plan.digits() * n), product(n), entry(n), wide(n);
  digits(party, a, plan.covered, plan.digit_bits, parts);
  const auto look_up = [&](int i, std::span<u64> words) {
    lookup(party, plan.tables[i], std::span(parts).subspan(i * n, n), digit_width(plan, i), width,
           words);
  };
  look_up(top, product);
  for (int i = top - 1; i >= 0; --i) {
    look_up(i, entry);
    multiply(party, product, factor(plan), entry, factor(plan), product_bits(plan), wide);
    truncate_reduce(party, wide, product_bits(plan), dropped(plan, i), product);
  }
  std::ranges::copy(product, out.begin());
  if (!plan.tests_high_bits()) return;
  std::vector<u64> high(n);
  std::vector<u8> vanishes_not(n);
  truncate_reduce(party, a, plan.bits, plan.covered, high);
  equal_zero(party, high, plan.bits - plan.covered, vanishes_not);
  multiplex(party, vanishes_not, product, plan.out_scale + 2, out);
}

void cost_decay(CostMeter& meter, const Decay& plan, i64 n) {
  const int top = plan.digits() - 1, width = word_bits(plan);
  cost_digits(meter, n, plan.covered, plan.digit_bits);
  cost_lookup(meter, n, digit_width(plan, top), width);
  for (int i = top - 1; i >= 0; --i) {
    cost_lookup(meter, n, digit_width(plan, i), width);
    cost_multiply(meter, n, factor(plan), factor(plan), product_bits(plan));
    cost_truncate_reduce(meter, n, product_bits(plan), dropped(plan, i));
  }
  if (!plan.tests_high_bits()) return;
  cost_truncate_reduce(meter, n, plan.bits, plan.covered);
  cost_equal_zero(meter, n, plan.bits - plan.covered);
  cost_multiplex(meter, n, plan.out_scale + 2);
}

}  // namespace privml
