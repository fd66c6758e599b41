// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/best_of_four.h"

#include <algorithm>
#include <vector>

#include "twopc/compare/comparison.h"
#include "twopc/select/bit_chains.h"
#include "twopc/select/bit_products.h"
#include "twopc/select/random_selection.h"

namespace privml::twopc {
namespace {

constexpr i64 kGroup = 4;

struct Group {
  i64 first, size;
};

std::vector<Group> groups_in(i64 candidates) {
  std::vector<Group> groups;
  for (i64 first = 0; first < candidates; first += kGroup)
    groups.push_back({first, std::min(kGroup, candidates - first)});
  return groups;
}

struct Counts {
  i64 pairs = 0, selections = 0;
  std::vector<int> products;       // of groups of three: widths
  std::vector<ChainShape> chains;  // of groups of four
};

Counts counts_of(i64 candidates) {
  Counts counts;
  for (const Group& group : groups_in(candidates)) {
    counts.pairs += pairs_in(group.size);
    counts.selections += group.size - 1;
    for (i64 winner = 0; winner + 1 < group.size; ++winner) {
      if (group.size == 3) counts.products.push_back(1);
      if (group.size == 4) counts.chains.push_back({false, 1});
    }
  }
  return counts;
}

// Calls each(group, first pair, first selection).
template <class Each>
void for_each_group(i64 candidates, Each&& each) {
  i64 pair = 0, selection = 0;
  for (const Group& group : groups_in(candidates)) {
    each(group, pair, selection);
    pair += pairs_in(group.size);
    selection += group.size - 1;
  }
}

// Planes of a pair's outcome for either side: [a >= b] at 2 * pair, its complement after it.
struct Outcomes {
  i64 n;
  AlignedVector<u8> planes;
  u8* wins(i64 pair, bool first) { return planes.data() + (2 * pair + (first ? 0 : 1)) * n; }
};

// For each candidate but the last, the planes of its pairs.
std::vector<u8*> planes_of(Outcomes& outcomes, const Group& group, i64 pair, i64 winner) {
  std::vector<u8*> planes;
  for (i64 other = 0; other < group.size; ++other) {
    if (other == winner) continue;
    const i64 at = pair_at(group.size, std::min(winner, other), std::max(winner, other));
    planes.push_back(outcomes.wins(pair + at, winner < other));
  }
  return planes;
}

// wins: one plane per selection.
void find_winners(ot::Party& party, i64 candidates, const ChainMasks& masks, Outcomes& outcomes,
                  AlignedVector<u8>& wins) {
  const i64 n = outcomes.n;
  std::vector<PlaneProduct> products;
  std::vector<PlaneChain> chains;
  for_each_group(candidates, [&](const Group& group, i64 pair, i64 selection) {
    for (i64 winner = 0; winner + 1 < group.size; ++winner) {
      u8* const out = wins.data() + (selection + winner) * n;
      const std::vector<u8*> planes = planes_of(outcomes, group, pair, winner);
      if (group.size == 2) std::copy_n(planes[0], n, out);
      if (group.size == 3) products.push_back({planes[0], {{planes[1], out, false}}});
      if (group.size == 4)
        chains.push_back({planes[0], planes[1], nullptr, nullptr, {{planes[2], out, false}}});
    }
  });
  if (products.empty() && chains.empty()) return;
  PendingProducts pairs;
  PendingChains threes;
  write_products(party, std::move(products), n, pairs);
  write_chains(party, masks, 0, std::move(chains), threes);
  read_products(party, pairs);
  read_chains(party, masks, threes);
}

template <class Planner>
bool prefers(const Planner& planner, const CandidateShape& shape) {
  const ComparisonPrices prices = comparison_prices(planner, shape.n);
  if (!prices.slow() || shape.candidates < 3) return false;
  const double price = prices.correlation + kComputingBits;
  const ComparisonPlan plan = plan_comparison({shape.bits - 1}, prices);
  const double messages = 2 + static_cast<double>(plan.levels.size());
  const double compared = plan_bits(plan, {prices.correlation, 0, true});
  const double selected = 2 * (price + static_cast<double>(shape.length * shape.bits) + 1);
  double pairs = 0, fours = 0;
  for (i64 left = shape.candidates; left > 1; left -= left / 2) {
    pairs += (messages + 1) * prices.level + static_cast<double>(left / 2) * (compared + selected);
  }
  for (i64 left = shape.candidates; left > 1; left = groups_of_four(left)) {
    const Counts counts = counts_of(left);
    const double products = static_cast<double>(counts.products.size() + counts.chains.size());
    fours += (messages + (products > 0 ? 2 : 1)) * prices.level +
             static_cast<double>(counts.pairs) * compared +
             static_cast<double>(counts.selections) * selected + products * (4 * price + 10);
  }
  return fours < pairs;
}

}  // namespace

i64 groups_of_four(i64 candidates) { return ceil_div(candidates, kGroup); }

void best_of_four(ot::Party& party, const CandidateShape& shape, std::vector<u64>& state) {
  const auto [n, candidates, length, bits] = shape;
  const i64 size = n * length;
  const Counts counts = counts_of(candidates);
  std::vector<u64> sign(counts.pairs * n), differences(counts.selections * size);
  for_each_group(candidates, [&](const Group& group, i64 pair, i64 selection) {
    const u64* const first = state.data() + group.first * size;
    const u64* const last = first + (group.size - 1) * size;
    for (i64 a = 0; a + 1 < group.size; ++a) {
      for (i64 b = a + 1; b < group.size; ++b)
        for (i64 i = 0; i < n; ++i)
          sign[(pair + pair_at(group.size, a, b)) * n + i] =
              first[a * size + i * length] - first[b * size + i * length];
      for (i64 j = 0; j < size; ++j)
        differences[(selection + a) * size + j] = first[a * size + j] - last[j];
    }
  });
  RandomSelection random;
  ChainMasks masks;
  Comparison carry;
  write_random_selection(party, differences, length, bits, random);
  write_chain_masks(party, counts.chains, n, masks);
  begin_comparison(party, {bits - 1}, sign, carry_flip(party.rank), carry);
  read_random_selection(party, random);
  read_chain_masks(party, masks);
  finish_comparison(party, carry);
  const std::span<const u8> carries = greater_of(carry);
  const u8 flip = party.rank == 0 ? 1 : 0;
  Outcomes outcomes{n, {}};
  outcomes.planes.resize(2 * counts.pairs * n);
  for (i64 pair = 0; pair < counts.pairs; ++pair) {
    for (i64 i = 0; i < n; ++i) {
      const i64 at = pair * n + i;
      const u8 less = static_cast<u8>(sign[at] >> (bits - 1) & 1) ^ carries[at];
      outcomes.wins(pair, true)[i] = less ^ flip;
      outcomes.wins(pair, false)[i] = less;
    }
  }
  AlignedVector<u8> wins(counts.selections * n), opened(counts.selections * n);
  find_winners(party, candidates, masks, outcomes, wins);
  write_difference(party, wins, random.bits, opened);
  read_bits_xor(party, opened);
  select_values(random, differences, opened, differences);
  i64 next = 0;
  for_each_group(candidates, [&](const Group& group, i64, i64 selection) {
    const u64* const last = state.data() + (group.first + group.size - 1) * size;
    u64* const out = state.data() + next++ * size;
    for (i64 j = 0; j < size; ++j) {
      u64 best = last[j];
      for (i64 a = 0; a + 1 < group.size; ++a) best += differences[(selection + a) * size + j];
      out[j] = best;
    }
  });
}

void cost_best_of_four(ot::CostMeter& meter, const CandidateShape& shape) {
  const auto [n, candidates, length, bits] = shape;
  const Counts counts = counts_of(candidates);
  const ComparisonShape compared{bits - 1};
  const i64 pairs = counts.pairs * n, selections = counts.selections * n;
  const i64 masks = chain_masks_bytes(counts.chains, n);
  cost_draw_random_selection(meter, selections);
  cost_draw_chain_masks(meter, counts.chains, n);
  cost_draw_comparison(meter, compared, pairs);
  cost_flight(meter, random_selection_flight(selections, length, bits) + Flight{masks, masks} +
                         comparison_flight(meter, compared, pairs));
  cost_finish_comparison(meter, compared, pairs);
  if (!counts.products.empty() || !counts.chains.empty()) {
    const i64 bytes = products_bytes(counts.products, n) + chains_bytes(counts.chains, n);
    cost_draw_products(meter, counts.products, n);
    meter.exchange(bytes, bytes);
  }
  meter.exchange(packed_bytes(selections, 1), packed_bytes(selections, 1));
}

bool prefers_best_of_four(const ot::Party& party, const CandidateShape& shape) {
  return prefers(party, shape);
}

bool prefers_best_of_four(const ot::CostMeter& meter, const CandidateShape& shape) {
  return prefers(meter, shape);
}

}  // namespace privml::twopc
