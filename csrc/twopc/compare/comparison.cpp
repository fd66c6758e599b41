// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/comparison.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "twopc/compare/digit_transfer.h"
#include "twopc/session/chunk.h"

namespace privml {
namespace {

std::span<const u8> plane_of(const AlignedVector<u8>& planes, int digit, i64 n) {
  return digit < 0 ? std::span<const u8>() : std::span(planes).subspan(digit * n, n);
}

DigitPlanes planes_from(Comparison& state, i64 begin) {
  return {state.greater.data() + begin, state.equal.data() + begin, state.n};
}

// greater = greater_high ^ (equal_high & greater_low), equal = equal_high & equal_low.
PlaneProduct join_product(Comparison& state, const Join& join) {
  const auto plane = [&](AlignedVector<u8>& planes, int digit) {
    return planes.data() + digit * state.n;
  };
  u8* const equal_high = plane(state.equal, join.high);
  PlaneProduct product{equal_high, {}};
  if (join.greater) {
    u8* const greater_high = plane(state.greater, join.high);
    product.factors.push_back({plane(state.greater, join.low), greater_high, true});
  }
  if (join.equality) product.factors.push_back({plane(state.equal, join.low), equal_high, false});
  return product;
}

std::vector<int> join_widths(const std::vector<Join>& level) {
  std::vector<int> widths;
  for (const Join& join : level) widths.push_back(join.greater && join.equality ? 2 : 1);
  return widths;
}

}  // namespace

void begin_comparison(Party& party, const ComparisonShape& shape, std::span<const u64> x, u64 flip,
                      Comparison& state) {
  state.plan = plan_comparison(shape, party.correlation_bits);
  state.n = std::ssize(x);
  state.numbers.resize(state.n);
  state.greater.resize(state.plan.digits.size() * state.n);
  state.equal.resize(state.plan.digits.size() * state.n);
  // Where party 1 sends, both complement: [~x1 > ~x0] = [x0 > x1].
  const i64 half = first_half(state.n);
  const u64 mask = low_mask(shape.bits);
  for (i64 i = 0; i < half; ++i) state.numbers[i] = (x[i] ^ flip) & mask;
  for (i64 i = half; i < state.n; ++i) state.numbers[i] = ~(x[i] ^ flip) & mask;
  const Halves part = halves(party.rank, state.n);
  choose_digits(party, state.plan,
                std::span(state.numbers).subspan(part.receive_begin, part.receive_count),
                planes_from(state, part.receive_begin));
}

void send_leaves(Party& party, Comparison& state) {
  const Halves part = halves(party.rank, state.n);
  send_digits(party, state.plan, std::span(state.numbers).subspan(part.send_begin, part.send_count),
              planes_from(state, part.send_begin));
}

void receive_leaves(Party& party, Comparison& state) {
  const Halves part = halves(party.rank, state.n);
  receive_digits(party, state.plan,
                 std::span(state.numbers).subspan(part.receive_begin, part.receive_count),
                 planes_from(state, part.receive_begin));
}

void write_level(Party& party, Comparison& state, int level, PendingProducts& pending) {
  std::vector<PlaneProduct> products;
  for (const Join& join : state.plan.levels[level]) products.push_back(join_product(state, join));
  write_products(party, std::move(products), state.n, pending);
}

void finish_comparison(Party& party, Comparison& state) {
  send_leaves(party, state);
  receive_leaves(party, state);
  for (int level = 0; level < std::ssize(state.plan.levels); ++level) {
    PendingProducts pending;
    write_level(party, state, level, pending);
    read_products(party, pending);
  }
}

void compare_in_chunks(Party& party, const ComparisonShape& shape, std::span<const u64> x, u64 flip,
                       const ComparisonResults& results) {
  for (std::span<u8> result : {results.greater, results.equal, results.low_greater}) {
    expect(result.empty() || result.size() == x.size(),
           "comparison: every output must be as long as the input");
  }
  in_chunks(
      party, std::ssize(x), [&](CostMeter& meter, i64 n) { cost_comparison(meter, shape, n); },
      [&](i64 begin, i64 n) {
        Comparison state;
        begin_comparison(party, shape, x.subspan(begin, n), flip, state);
        finish_comparison(party, state);
        const auto copy = [&](std::span<const u8> from, std::span<u8> to) {
          if (!to.empty()) std::ranges::copy(from, to.begin() + begin);
        };
        copy(greater_of(state), results.greater);
        copy(equal_of(state), results.equal);
        copy(low_greater_of(state), results.low_greater);
      });
}

void cost_compare_in_chunks(CostMeter& meter, const ComparisonShape& shape, i64 n) {
  cost_in_chunks(meter, n, [&](CostMeter& m, i64 count) { cost_comparison(m, shape, count); });
}

std::span<const u8> greater_of(const Comparison& state) {
  return plane_of(state.greater, state.plan.root, state.n);
}

std::span<const u8> equal_of(const Comparison& state) {
  return plane_of(state.equal, state.plan.root, state.n);
}

std::span<const u8> low_greater_of(const Comparison& state) {
  return plane_of(state.greater, state.plan.low_root, state.n);
}

std::span<const u8> low_equal_of(const Comparison& state) {
  return plane_of(state.equal, state.plan.low_root, state.n);
}

Flight comparison_flight(const CostMeter& meter, const ComparisonShape& shape, i64 n) {
  const ComparisonPlan plan = plan_comparison(shape, meter.correlation_bits);
  const i64 half = first_half(n);
  return {digit_choice_bytes(plan, n - half), digit_choice_bytes(plan, half)};
}

void cost_draw_comparison(CostMeter& meter, const ComparisonShape& shape, i64 n) {
  const i64 half = first_half(n);
  const i64 per_instance = digit_correlations(plan_comparison(shape, meter.correlation_bits));
  meter.draw(0, half * per_instance);
  meter.draw(1, (n - half) * per_instance);
}

int comparison_levels(const CostMeter& meter, const ComparisonShape& shape) {
  return static_cast<int>(std::ssize(plan_comparison(shape, meter.correlation_bits).levels));
}

Flight leaves_flight(const CostMeter& meter, const ComparisonShape& shape, i64 n) {
  const ComparisonPlan plan = plan_comparison(shape, meter.correlation_bits);
  const i64 half = first_half(n);
  return {digit_message_bytes(plan, half), digit_message_bytes(plan, n - half)};
}

Flight level_flight(const CostMeter& meter, const ComparisonShape& shape, i64 n, int level) {
  const ComparisonPlan plan = plan_comparison(shape, meter.correlation_bits);
  const i64 bytes = products_bytes(join_widths(plan.levels[level]), n);
  return {bytes, bytes};
}

void cost_draw_levels(CostMeter& meter, const ComparisonShape& shape, i64 n) {
  for (const std::vector<Join>& level : plan_comparison(shape, meter.correlation_bits).levels)
    cost_draw_products(meter, join_widths(level), n);
}

void cost_finish_comparison(CostMeter& meter, const ComparisonShape& shape, i64 n) {
  const ComparisonPlan plan = plan_comparison(shape, meter.correlation_bits);
  cost_flight(meter, leaves_flight(meter, shape, n));
  for (const std::vector<Join>& level : plan.levels) {
    cost_multiply_planes(meter, join_widths(level), n);
  }
}

void cost_comparison(CostMeter& meter, const ComparisonShape& shape, i64 n) {
  cost_draw_comparison(meter, shape, n);
  cost_flight(meter, comparison_flight(meter, shape, n));
  cost_finish_comparison(meter, shape, n);
}

}  // namespace privml
