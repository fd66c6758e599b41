// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/negative_exponential.h"

#include <algorithm>
#include <bit>

#include "functions/fixed/exponential_table.h"
#include "twopc/compare/equality.h"
#include "twopc/lookup/digits.h"
#include "twopc/lookup/lookup.h"
#include "twopc/product/word_product.h"
#include "twopc/select/multiplex.h"
#include "twopc/width/extension.h"
#include "twopc/width/truncation.h"

namespace privml {
namespace {

using Words = std::vector<u64>;

constexpr int kLargestDigit = 8;
constexpr int kMostPrecision = 31;  // products stay below 2^64

// Bits of `a` beyond which the value rounds to zero.
int vanishing_bits(const NegativeExponentialShape& shape) {
  int bits = 1;
  while (bits < shape.bits &&
         exponential_fraction(u64{1} << bits, shape.scale) >> (63 - shape.out_scale) != 0)
    ++bits;
  return bits;
}

ExponentialDigit make_digit(std::vector<u64> entries, const ExponentialTable& table, bool top) {
  const u64 one = u64{1} << table.precision;
  const auto [least, most] = std::ranges::minmax(entries);
  const bool complement = !top && std::bit_width(one - least) < std::bit_width(most);
  if (complement)
    for (u64& entry : entries) entry = one - entry;
  const int bits = std::max<int>(1, std::bit_width(complement ? one - least : most));
  return {table.offset, table.bits, std::move(entries), bits, complement};
}

// What the product with digit i, counted down, drops: guard bits go with the last.
int dropped(const NegativeExponential& plan, int i) {
  return plan.precision + (i == 0 ? plan.precision - plan.out_scale : 0);
}

u64 half(const NegativeExponential& plan, int i) {
  return dropped(plan, i) == 0 ? 0 : u64{1} << (dropped(plan, i) - 1);
}

// Bits of the ring after the product with digit i: between products one more than the value has,
// so that the top bit is known; at the end the output's, unless these are so many that an extension
// is cheaper.
int reduced_bits(const NegativeExponential& plan, int i) {
  if (i > 0) return plan.precision + 2;
  const bool direct = plan.out_bits <= plan.out_scale + 4 && plan.out_bits + dropped(plan, 0) <= 64;
  return direct ? plan.out_bits : plan.out_scale + 2;
}

int product_bits(const NegativeExponential& plan, int i) {
  return reduced_bits(plan, i) + dropped(plan, i);
}

// The top entry in a ring with one bit to spare.
int first_bits(const NegativeExponential& plan) {
  return plan.top() == 0 ? plan.out_bits : plan.digits[plan.top()].entry_bits + 1;
}

WordFormat word(const ExponentialDigit& digit) { return {digit.entry_bits, false}; }

// Digits of the looked-up part, most significant first needed; two need one carry only.
std::vector<Words> cut(Party& party, const NegativeExponential& plan, std::span<const u64> a) {
  const i64 n = std::ssize(a), count = std::ssize(plan.digits);
  std::vector<Words> parts(count, Words(n));
  const int size = plan.digits[0].bits;
  if (count <= 2) {
    for (i64 k = 0; k < n; ++k) parts[0][k] = a[k] & low_mask(size);
    if (count == 2) truncate_reduce(party, a, plan.covered, size, parts[1]);
    return parts;
  }
  Words all(count * n);
  digits(party, a, plan.covered, size, all);
  for (i64 i = 0; i < count; ++i) std::copy_n(all.begin() + i * n, n, parts[i].begin());
  return parts;
}

void cost_cut(CostMeter& meter, const NegativeExponential& plan, i64 n) {
  const int size = plan.digits[0].bits;
  if (plan.top() == 1) cost_truncate_reduce(meter, n, plan.covered, size);
  if (plan.top() > 1) cost_digits(meter, n, plan.covered, size);
}

// value in Z_{2^from} times the digit's entry: rounded, in Z_{2^reduced_bits}.
void multiply_digit(Party& party, const NegativeExponential& plan, int i,
                    std::span<const u64> entry, int from, Words& value) {
  const ExponentialDigit& digit = plan.digits[i];
  const int ell = product_bits(plan, i);
  Words wide(value.size()), product(value.size());
  extend_nonnegative(party, value, from, ell, wide);
  multiply_word(party, entry, word(digit), wide, ell, product);
  const u64 added = party.rank == 0 ? half(plan, i) : 0;
  for (std::size_t k = 0; k < value.size(); ++k) {
    if (digit.complement) product[k] = (wide[k] << plan.precision) - product[k];
    product[k] += added;
  }
  truncate_reduce(party, product, ell, dropped(plan, i), value);
}

void cost_multiply_digit(CostMeter& meter, const NegativeExponential& plan, int i, int from,
                         i64 n) {
  const int ell = product_bits(plan, i);
  cost_extend_nonnegative(meter, n, from, ell);
  cost_multiply_word(meter, n, word(plan.digits[i]), ell);
  cost_truncate_reduce(meter, n, ell, dropped(plan, i));
}

}  // namespace

NegativeExponential plan_negative_exponential(const NegativeExponentialShape& shape) {
  NegativeExponential plan;
  plan.bits = shape.bits;
  plan.covered = std::min(shape.bits, std::max(vanishing_bits(shape), 2 * kLargestDigit));
  plan.out_scale = shape.out_scale;
  plan.out_bits = shape.out_bits;
  const int count = static_cast<int>(ceil_div(plan.covered, kLargestDigit));
  const int size = static_cast<int>(ceil_div(plan.covered, count));
  plan.precision = count <= 2 ? shape.out_scale
                              : std::clamp(shape.out_scale + count - 2, shape.out_scale,
                                           std::max(kMostPrecision, shape.out_scale));
  for (int offset = 0; offset < plan.covered; offset += size) {
    ExponentialTable table{std::min(size, plan.covered - offset), offset, shape.scale,
                           plan.precision};
    const bool top = offset + size >= plan.covered;
    if (offset == 0) {
      table.start = shape.start;
      // The largest word that does not round up to 1 without its guard bits.
      const u64 least_step = u64{1} << (plan.precision - shape.out_scale);
      if (shape.below_one) table.most = (u64{1} << plan.precision) - least_step;
    }
    plan.digits.push_back(make_digit(exponential_table(table), table, top));
  }
  return plan;
}

void clear_negative_exponential(const NegativeExponential& plan, std::span<const u64> a,
                                std::span<u64> out) {
  for (std::size_t k = 0; k < a.size(); ++k) {
    const u64 value = a[k] & low_mask(plan.bits);
    u64 product = 0;
    for (int i = plan.top(); i >= 0; --i) {
      const ExponentialDigit& digit = plan.digits[i];
      u64 entry = digit.entries[(value >> digit.offset) & low_mask(digit.bits)];
      if (digit.complement) entry = (u64{1} << plan.precision) - entry;
      product = i == plan.top() ? entry : (product * entry + half(plan, i)) >> dropped(plan, i);
    }
    out[k] = value >> plan.covered == 0 ? product : 0;
  }
}

void negative_exponential(Party& party, const NegativeExponential& plan, std::span<const u64> a,
                          std::span<u64> out) {
  const i64 n = std::ssize(a);
  const std::vector<Words> parts = cut(party, plan, a);
  std::vector<Words> entries(plan.digits.size(), Words(n));
  std::vector<TableLookup> lookups;
  for (int i = 0; i <= plan.top(); ++i)
    lookups.push_back({plan.digits[i].entries, parts[i], plan.digits[i].bits,
                       plan.digits[i].entry_bits, entries[i]});
  lookups_xor(party, lookups);
  Words value(n);
  int bits = first_bits(plan);
  word_to_ring(party, entries[plan.top()], word(plan.digits[plan.top()]), bits, value);
  for (int i = plan.top() - 1; i >= 0; --i) {
    multiply_digit(party, plan, i, entries[i], bits, value);
    bits = reduced_bits(plan, i);
  }
  if (plan.covered < plan.bits) {
    Words high(n);
    std::vector<u8> keeps(n);
    truncate_reduce(party, a, plan.bits, plan.covered, high);
    equal_zero(party, high, plan.bits - plan.covered, keeps);
    multiplex(party, keeps, value, bits, value);
  }
  extend_nonnegative(party, value, bits, plan.out_bits, out);
}

void cost_negative_exponential(CostMeter& meter, const NegativeExponential& plan, i64 n) {
  cost_cut(meter, plan, n);
  std::vector<TableShape> shapes;
  for (const ExponentialDigit& digit : plan.digits)
    shapes.push_back({digit.bits, digit.entry_bits});
  cost_lookups_xor(meter, n, shapes);
  int bits = first_bits(plan);
  cost_word_to_ring(meter, n, word(plan.digits[plan.top()]), bits);
  for (int i = plan.top() - 1; i >= 0; --i) {
    cost_multiply_digit(meter, plan, i, bits, n);
    bits = reduced_bits(plan, i);
  }
  if (plan.covered < plan.bits) {
    cost_truncate_reduce(meter, n, plan.bits, plan.covered);
    cost_equal_zero(meter, n, plan.bits - plan.covered);
    cost_multiplex(meter, n, bits);
  }
  cost_extend_nonnegative(meter, n, bits, plan.out_bits);
}

}  // namespace privml
