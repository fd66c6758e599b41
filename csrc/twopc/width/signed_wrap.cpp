// SPDX-License-Identifier: Apache-2.0
#include "twopc/width/signed_wrap.h"

#include <array>
#include <bit>
#include <vector>

#include "base/divisor.h"
#include "base/error.h"
#include "twopc/compare/comparison.h"
#include "twopc/select/random_selection.h"
#include "twopc/session/chunk.h"

namespace privml::twopc {
namespace {

constexpr u64 kMostProducts = 3;

// Party 0: floor((2^bits - 1 - x0') / D); party 1: floor(x1 / D).
u64 quotient(int rank, u64 x, u64 mask, u64 bound, const PublicDivisor& divisor) {
  return divisor.quotient(rank == 0 ? mask - ((x - bound) & mask) : x & mask);
}

u8 exceeds(u64 x, u64 mask, u64 bound) { return (x & mask) >= bound; }

void compare_chunk(ot::Party& party, const SignedWrapPlan& plan, std::span<const u64> x, int bits,
                   u64 bound, int width, std::span<u64> out) {
  const i64 n = std::ssize(x);
  const PublicDivisor divisor(plan.divisor);
  AlignedVector<u64> numbers(n);
  for (i64 i = 0; i < n; ++i) {
    numbers[i] = quotient(party.rank, x[i], low_mask(bits), bound, divisor);
  }
  RandomBits random;
  Comparison less;
  write_random_bits(party, n, width, random);
  // [~a > ~b] = [a < b].
  begin_comparison(party, {plan.compare_bits}, numbers, ~u64{0}, less);
  read_random_bits(party, random);
  finish_comparison(party, less);
  const PendingConversion conversions[] = {{random, greater_of(less), out}};
  finish_conversions(party, conversions);
  if (party.rank != 0) return;
  for (i64 i = 0; i < n; ++i) {
    out[i] = (out[i] + exceeds(x[i], low_mask(bits), bound)) & low_mask(width);
  }
}

void multiply_chunk(ot::Party& party, const SignedWrapPlan& plan, std::span<const u64> x, int bits,
                    u64 bound, int width, std::span<u64> out) {
  PrivateProduct state;
  write_signed_wrap(party, plan, x, bits, bound, width, state);
  read_signed_wrap(party, plan, x, bits, bound, state, out);
}

void cost_chunk(ot::CostMeter& meter, const SignedWrapPlan& plan, i64 n, int width) {
  if (plan.products > 0) {
    cost_draw_private_product(meter, n * plan.products);
    cost_flight(meter, private_product_flight(n * plan.products, width));
    return;
  }
  const ComparisonShape shape{plan.compare_bits};
  cost_draw_random_bits(meter, n, width);
  cost_draw_comparison(meter, shape, n);
  cost_flight(meter, random_bits_flight(n, width) + comparison_flight(meter, shape, n));
  cost_finish_comparison(meter, shape, n);
  cost_finish_conversions(meter, n, std::array{width});
}

}  // namespace

SignedWrapPlan plan_signed_wrap(int bits, u64 bound) {
  expect(bits >= 1 && bits <= 64, "signed_wrap: bits must be in 1..64");
  expect(bound >= 1 && bound <= u64{1} << (bits - 1),
         "signed_wrap: bound must be in 1..2^(bits-1)");
  const u64 last = low_mask(bits);
  const u64 divisor = last - (bound - 1) - bound + 1;
  const u64 largest = last / divisor;
  if (largest <= kMostProducts) return {divisor, static_cast<int>(largest), 0};
  return {divisor, 0, static_cast<int>(std::bit_width(largest))};
}

// [a < b] = the sum over i < K of [a = i] [b > i].
void write_signed_wrap(ot::Party& party, const SignedWrapPlan& plan, std::span<const u64> x,
                       int bits, u64 bound, int width, PrivateProduct& state) {
  const i64 n = std::ssize(x), products = plan.products;
  const PublicDivisor divisor(plan.divisor);
  std::vector<u8> factors(n * products);
  for (i64 i = 0; i < n; ++i) {
    const u64 number = quotient(party.rank, x[i], low_mask(bits), bound, divisor);
    for (i64 k = 0; k < products; ++k) {
      const u64 place = static_cast<u64>(k);
      factors[i * products + k] = party.rank == 0 ? number == place : number > place;
    }
  }
  write_private_product(party, factors, width, state);
}

void read_signed_wrap(ot::Party& party, const SignedWrapPlan& plan, std::span<const u64> x,
                      int bits, u64 bound, PrivateProduct& state, std::span<u64> out) {
  const i64 n = std::ssize(x), products = plan.products;
  AlignedVector<u64> terms(n * products);
  read_private_product(party, state, terms);
  const u64 first = party.rank == 0 ? 1 : 0;
  for (i64 i = 0; i < n; ++i) {
    u64 sum = first & exceeds(x[i], low_mask(bits), bound);
    for (i64 k = 0; k < products; ++k) sum += terms[i * products + k];
    out[i] = sum & low_mask(state.width);
  }
}

void signed_wrap(ot::Party& party, std::span<const u64> x, int bits, u64 bound, int width,
                 std::span<u64> out) {
  const SignedWrapPlan plan = plan_signed_wrap(bits, bound);
  expect(width >= 1 && width <= 64, "signed_wrap: width must be in 1..64");
  expect(x.size() == out.size(), "signed_wrap: out must be as long as x");
  in_chunks(
      party, std::ssize(x), [&](ot::CostMeter& meter, i64 n) { cost_chunk(meter, plan, n, width); },
      [&](i64 begin, i64 n) {
        const auto chunk = plan.products > 0 ? multiply_chunk : compare_chunk;
        chunk(party, plan, x.subspan(begin, n), bits, bound, width, out.subspan(begin, n));
      });
}

void cost_signed_wrap(ot::CostMeter& meter, i64 n, int bits, u64 bound, int width) {
  const SignedWrapPlan plan = plan_signed_wrap(bits, bound);
  cost_in_chunks(meter, n, [&](ot::CostMeter& m, i64 count) { cost_chunk(m, plan, count, width); });
}

}  // namespace privml::twopc
