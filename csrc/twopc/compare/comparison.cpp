// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/comparison.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "twopc/compare/digit_transfer.h"
#include "twopc/session/chunk.h"

namespace privml::twopc {
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

// greater = greater_high ^ (equal_high & (greater_middle ^ equal_middle & greater_low)),
// equal = equal_high & equal_middle & equal_low.
PlaneChain join_chain(Comparison& state, const Join& join) {
  const auto plane = [&](AlignedVector<u8>& planes, int digit) {
    return planes.data() + digit * state.n;
  };
  u8* const equal_high = plane(state.equal, join.high);
  PlaneChain chain;
  chain.first = equal_high;
  chain.second = plane(state.equal, join.middle);
  if (join.greater) {
    chain.middle = plane(state.greater, join.middle);
    chain.middle_out = plane(state.greater, join.high);
    chain.last.push_back({plane(state.greater, join.low), chain.middle_out, true});
  }
  if (join.equality) chain.last.push_back({plane(state.equal, join.low), equal_high, false});
  return chain;
}

int last_factors(const Join& join) { return join.greater && join.equality ? 2 : 1; }

// Of the joins of two.
std::vector<int> join_widths(const std::vector<Join>& level) {
  std::vector<int> widths;
  for (const Join& join : level)
    if (!join.of_three()) widths.push_back(last_factors(join));
  return widths;
}

std::vector<ChainShape> join_chains(const std::vector<Join>& level) {
  std::vector<ChainShape> shapes;
  for (const Join& join : level)
    if (join.of_three()) shapes.push_back({join.greater, last_factors(join)});
  return shapes;
}

std::vector<ChainShape> all_chains(const ComparisonPlan& plan) {
  std::vector<ChainShape> shapes;
  for (const std::vector<Join>& level : plan.levels)
    for (const ChainShape& shape : join_chains(level)) shapes.push_back(shape);
  return shapes;
}

ComparisonPlan plan_of(const ot::CostMeter& meter, const ComparisonShape& shape, i64 n) {
  return plan_comparison(shape, comparison_prices(meter, n));
}

i64 level_bytes(const std::vector<Join>& level, i64 n) {
  const std::vector<int> pairs = join_widths(level);
  const std::vector<ChainShape> chains = join_chains(level);
  return products_bytes(pairs, n) + chains_bytes(chains, n);
}

}  // namespace

void prepare_comparison(ot::Party& party, const ComparisonShape& shape, i64 n, Comparison& state) {
  state.n = n;
  state.plan = plan_comparison(shape, comparison_prices(party, n));
  state.stage = Comparison::Stage::masks_written;
  write_chain_masks(party, all_chains(state.plan), n, state.masks);
}

void read_masks(ot::Party& party, Comparison& state) {
  read_chain_masks(party, state.masks);
  state.stage = Comparison::Stage::masks_read;
}

void begin_comparison(ot::Party& party, const ComparisonShape& shape, std::span<const u64> x,
                      u64 flip, Comparison& state) {
  // Both parties draw correlations of a direction in one order: these before those of the leaves.
  if (state.stage == Comparison::Stage::nothing)
    prepare_comparison(party, shape, std::ssize(x), state);
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

void send_leaves(ot::Party& party, Comparison& state) {
  if (state.stage == Comparison::Stage::masks_written) read_masks(party, state);
  const Halves part = halves(party.rank, state.n);
  send_digits(party, state.plan, std::span(state.numbers).subspan(part.send_begin, part.send_count),
              planes_from(state, part.send_begin));
}

void receive_leaves(ot::Party& party, Comparison& state) {
  const Halves part = halves(party.rank, state.n);
  receive_digits(party, state.plan,
                 std::span(state.numbers).subspan(part.receive_begin, part.receive_count),
                 planes_from(state, part.receive_begin));
}

void write_level(ot::Party& party, Comparison& state, int level, PendingLevel& pending) {
  size_t begin = 0;
  for (int before = 0; before < level; ++before)
    begin += join_chains(state.plan.levels[before]).size();
  std::vector<PlaneProduct> pairs;
  std::vector<PlaneChain> chains;
  for (const Join& join : state.plan.levels[level]) {
    if (join.of_three()) {
      chains.push_back(join_chain(state, join));
    } else {
      pairs.push_back(join_product(state, join));
    }
  }
  write_products(party, std::move(pairs), state.n, pending.pairs);
  write_chains(party, state.masks, begin, std::move(chains), pending.chains);
}

void read_level(ot::Party& party, Comparison& state, PendingLevel& pending) {
  read_products(party, pending.pairs);
  read_chains(party, state.masks, pending.chains);
}

void finish_comparison(ot::Party& party, Comparison& state) {
  send_leaves(party, state);
  receive_leaves(party, state);
  for (int level = 0; level < std::ssize(state.plan.levels); ++level) {
    PendingLevel pending;
    write_level(party, state, level, pending);
    read_level(party, state, pending);
  }
}

void compare_in_chunks(ot::Party& party, const ComparisonShape& shape, std::span<const u64> x,
                       u64 flip, const ComparisonResults& results) {
  for (std::span<u8> result : {results.greater, results.equal, results.low_greater}) {
    expect(result.empty() || result.size() == x.size(),
           "comparison: every output must be as long as the input");
  }
  in_chunks(
      party, std::ssize(x), [&](ot::CostMeter& meter, i64 n) { cost_comparison(meter, shape, n); },
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

void cost_compare_in_chunks(ot::CostMeter& meter, const ComparisonShape& shape, i64 n) {
  cost_in_chunks(meter, n, [&](ot::CostMeter& m, i64 count) { cost_comparison(m, shape, count); });
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

Flight comparison_flight(const ot::CostMeter& meter, const ComparisonShape& shape, i64 n) {
  const ComparisonPlan plan = plan_of(meter, shape, n);
  const i64 half = first_half(n), masks = chain_masks_bytes(all_chains(plan), n);
  return {digit_choice_bytes(plan, n - half) + masks, digit_choice_bytes(plan, half) + masks};
}

void cost_draw_comparison(ot::CostMeter& meter, const ComparisonShape& shape, i64 n) {
  const ComparisonPlan plan = plan_of(meter, shape, n);
  const i64 half = first_half(n), per_instance = digit_correlations(plan);
  meter.draw(0, half * per_instance);
  meter.draw(1, (n - half) * per_instance);
  cost_draw_chain_masks(meter, all_chains(plan), n);
}

int comparison_levels(const ot::CostMeter& meter, const ComparisonShape& shape, i64 n) {
  return static_cast<int>(std::ssize(plan_of(meter, shape, n).levels));
}

Flight leaves_flight(const ot::CostMeter& meter, const ComparisonShape& shape, i64 n) {
  const ComparisonPlan plan = plan_of(meter, shape, n);
  const i64 half = first_half(n);
  return {digit_message_bytes(plan, half), digit_message_bytes(plan, n - half)};
}

Flight level_flight(const ot::CostMeter& meter, const ComparisonShape& shape, i64 n, int level) {
  const i64 bytes = level_bytes(plan_of(meter, shape, n).levels[level], n);
  return {bytes, bytes};
}

void cost_draw_levels(ot::CostMeter& meter, const ComparisonShape& shape, i64 n) {
  for (const std::vector<Join>& level : plan_of(meter, shape, n).levels)
    cost_draw_products(meter, join_widths(level), n);
}

void cost_finish_comparison(ot::CostMeter& meter, const ComparisonShape& shape, i64 n) {
  const ComparisonPlan plan = plan_of(meter, shape, n);
  cost_flight(meter, leaves_flight(meter, shape, n));
  for (const std::vector<Join>& level : plan.levels) {
    cost_draw_products(meter, join_widths(level), n);
    meter.exchange(level_bytes(level, n), level_bytes(level, n));
  }
}

void cost_comparison(ot::CostMeter& meter, const ComparisonShape& shape, i64 n) {
  cost_draw_comparison(meter, shape, n);
  cost_flight(meter, comparison_flight(meter, shape, n));
  cost_finish_comparison(meter, shape, n);
}

}  // namespace privml::twopc
