// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/negative_exponential.h"

#include <algorithm>
#include <bit>

#include "functions/fixed/exponential_table.h"
#include "twopc/lookup/digits.h"
#include "twopc/lookup/lookup.h"

namespace privml::fixed {
namespace {

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

twopc::WordFormat word(const ExponentialDigit& digit) { return {digit.entry_bits, false}; }

// Digits of the looked-up part, least significant first; two need one carry only.
std::vector<functions::RingShares> cut(functions::Evaluator& evaluator,
                                       const NegativeExponential& plan,
                                       const functions::RingShares& a) {
  const i64 n = a.count, count = std::ssize(plan.digits);
  const int size = plan.digits[0].bits;
  if (count <= 2) {
    std::vector<functions::RingShares> parts{evaluator.map(n, size, [&](i64 k) { return a[k]; })};
    if (count == 2) parts.push_back(evaluator.truncate_reduce(a, plan.covered, size));
    return parts;
  }
  const functions::RingShares all = evaluator.result(
      count * n,
      [&](ot::Party& party, std::span<u64> out) {
        twopc::digits(party, a, plan.covered, size, out);
      },
      [&](ot::CostMeter& meter) { twopc::cost_digits(meter, n, plan.covered, size); });
  std::vector<functions::RingShares> parts;
  for (i64 i = 0; i < count; ++i) parts.push_back(functions::part_of(all, n, i));
  return parts;
}

// XOR shares of each digit's entry.
std::vector<functions::RingShares> look_up(functions::Evaluator& evaluator,
                                           const NegativeExponential& plan,
                                           const std::vector<functions::RingShares>& parts) {
  const i64 n = parts[0].count;
  std::vector<functions::RingShares> entries(plan.digits.size(), evaluator.ring(n));
  evaluator.call(
      [&](ot::Party& party) {
        std::vector<twopc::TableLookup> lookups;
        for (std::size_t i = 0; i < entries.size(); ++i) {
          const ExponentialDigit& digit = plan.digits[i];
          lookups.push_back(
              {digit.entries, parts[i], digit.bits, digit.entry_bits, entries[i].values});
        }
        twopc::lookups_xor(party, lookups);
      },
      [&](ot::CostMeter& meter) {
        std::vector<twopc::TableShape> shapes;
        for (const ExponentialDigit& digit : plan.digits)
          shapes.push_back({digit.bits, digit.entry_bits});
        twopc::cost_lookups_xor(meter, n, shapes);
      });
  return entries;
}

// value in Z_{2^from} times the digit's entry: rounded, in Z_{2^reduced_bits}.
functions::RingShares multiply_digit(functions::Evaluator& evaluator,
                                     const NegativeExponential& plan, int i,
                                     const functions::RingShares& entry, int from,
                                     const functions::RingShares& value) {
  const ExponentialDigit& digit = plan.digits[i];
  const int ell = product_bits(plan, i);
  const functions::RingShares wide = evaluator.extend_nonnegative(value, from, ell);
  functions::RingShares product = evaluator.multiply_word(entry, digit.entry_bits, wide, ell);
  if (digit.complement)
    evaluator.local(product.count,
                    [&](i64 k) { product[k] = (wide[k] << plan.precision) - product[k]; });
  return evaluator.round_off(std::move(product), ell, dropped(plan, i));
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
      product = i == plan.top()
                    ? entry
                    : (product * entry + functions::half_of(dropped(plan, i))) >> dropped(plan, i);
    }
    out[k] = value >> plan.covered == 0 ? product : 0;
  }
}

functions::RingShares negative_exponential(functions::Evaluator& evaluator,
                                           const NegativeExponential& plan,
                                           const functions::RingShares& a) {
  const std::vector<functions::RingShares> entries =
      look_up(evaluator, plan, cut(evaluator, plan, a));
  int bits = first_bits(plan);
  functions::RingShares value =
      evaluator.word_to_ring(entries[plan.top()], word(plan.digits[plan.top()]), bits);
  for (int i = plan.top() - 1; i >= 0; --i) {
    value = multiply_digit(evaluator, plan, i, entries[i], bits, value);
    bits = reduced_bits(plan, i);
  }
  if (plan.covered < plan.bits) {
    const functions::RingShares high = evaluator.truncate_reduce(a, plan.bits, plan.covered);
    value = evaluator.multiplex(evaluator.equal_zero(high, plan.bits - plan.covered), value, bits);
  }
  return evaluator.extend_nonnegative(value, bits, plan.out_bits);
}

}  // namespace privml::fixed
