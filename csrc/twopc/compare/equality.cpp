// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/equality.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/error.h"
#include "twopc/compare/comparison.h"
#include "twopc/product/private_product.h"
#include "twopc/session/chunk.h"

namespace privml::twopc {
namespace {

// Up to here digits and ANDs are cheaper than counting.
constexpr int kMaxDirectBits = 11;

// The low `counted` bits are replaced by the number of positions where they differ, in
// `count_bits` bits; the other bits (one, where `bits` is a power of two) are compared with it.
struct EqualityPlan {
  int counted;
  int count_bits;
  ComparisonShape last;
};

EqualityPlan plan_equality(int bits) {
  expect(bits >= 1 && bits <= 64, "equality: bits must be in 1..64");
  if (bits <= kMaxDirectBits) return {0, 0, {bits, 0, true, false}};
  const int counted = std::has_single_bit(static_cast<unsigned>(bits)) ? bits - 1 : bits;
  const int count_bits = static_cast<int>(std::bit_width(static_cast<unsigned>(counted)));
  return {counted, count_bits, {count_bits + bits - counted, 0, true, false}};
}

// Replaces the counted bits of the numbers: [b0 != b1] = b0 + b1 - 2 b0 b1, summed over the bits.
// Party 1 negates its share of the count, so that both agree iff the count is zero.
void count_differences(ot::Party& party, std::span<const u64> x, const EqualityPlan& plan,
                       std::span<u64> out) {
  const i64 n = std::ssize(x), counted = plan.counted;
  AlignedVector<u8> bits(n * counted);
  for (i64 i = 0; i < n; ++i) {
    for (i64 b = 0; b < counted; ++b) bits[i * counted + b] = x[i] >> b & 1;
  }
  PrivateProduct products;
  write_private_product(party, bits, plan.count_bits - 1, products);
  AlignedVector<u64> both(n * counted);
  read_private_product(party, products, both);
  const u64 negated = u64{0} - static_cast<u64>(party.rank);
  const u64 mask = low_mask(plan.count_bits);
  for (i64 i = 0; i < n; ++i) {
    u64 sum = std::popcount(x[i] & low_mask(plan.counted));
    for (i64 j = i * counted; j < (i + 1) * counted; ++j) sum -= 2 * both[j];
    const u64 rest = plan.counted < 64 ? x[i] >> plan.counted : 0;
    out[i] = (((sum ^ negated) - negated) & mask) | rest << plan.count_bits;
  }
}

void equal_chunk(ot::Party& party, std::span<const u64> x, const EqualityPlan& plan,
                 std::span<u8> out) {
  AlignedVector<u64> reduced(x.begin(), x.end());
  if (plan.counted > 0) count_differences(party, x, plan, reduced);
  Comparison last;
  begin_comparison(party, plan.last, reduced, 0, last);
  finish_comparison(party, last);
  std::ranges::copy(equal_of(last), out.begin());
}

void cost_equal_chunk(ot::CostMeter& meter, const EqualityPlan& plan, i64 n) {
  if (plan.counted > 0) {
    cost_draw_private_product(meter, n * plan.counted);
    cost_flight(meter, private_product_flight(n * plan.counted, plan.count_bits - 1));
  }
  cost_comparison(meter, plan.last, n);
}

// Every counted position holds a correlation and its product at once.
i64 chunk_limit(const EqualityPlan& plan) {
  return std::min(kChunk, kChunk * 16 / std::max(plan.counted, 1));
}

}  // namespace

void equal(ot::Party& party, std::span<const u64> x, int bits, std::span<u8> out) {
  expect(x.size() == out.size(), "equal: out must be as long as x");
  const EqualityPlan plan = plan_equality(bits);
  in_chunks(
      party, std::ssize(x), [&](ot::CostMeter& meter, i64 n) { cost_equal_chunk(meter, plan, n); },
      [&](i64 begin, i64 n) {
        equal_chunk(party, x.subspan(begin, n), plan, out.subspan(begin, n));
      },
      chunk_limit(plan));
}

void cost_equal(ot::CostMeter& meter, i64 n, int bits) {
  const EqualityPlan plan = plan_equality(bits);
  cost_in_chunks(
      meter, n, [&](ot::CostMeter& m, i64 count) { cost_equal_chunk(m, plan, count); },
      chunk_limit(plan));
}

// x0 + x1 = 0 iff x0 = -x1.
void equal_zero(ot::Party& party, std::span<const u64> x, int bits, std::span<u8> out) {
  const u64 negated = u64{0} - static_cast<u64>(party.rank);
  std::vector<u64> inputs(x.begin(), x.end());
  for (u64& word : inputs) word = (word ^ negated) - negated;
  equal(party, inputs, bits, out);
}

void cost_equal_zero(ot::CostMeter& meter, i64 n, int bits) { cost_equal(meter, n, bits); }

}  // namespace privml::twopc
