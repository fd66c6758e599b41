// SPDX-License-Identifier: Apache-2.0
#include "twopc/width/rectified_maximum.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "twopc/compare/best_of_four.h"
#include "twopc/compare/maximum.h"
#include "twopc/compare/together.h"
#include "twopc/select/bit_products.h"
#include "twopc/session/chunk.h"
#include "twopc/width/quotient.h"
#include "twopc/width/truncate_by_sign.h"

namespace privml::twopc {
namespace {

constexpr i64 kMost = 4;  // numbers of a window whose pairs are all compared

QuotientShape quotient_of(const RectifiedMaximum& shape) {
  return {shape.bits, shape.shift, shape.out_bits};
}

// Signs with the carries of the dropped bits, then the pairs, of n windows.
std::vector<CountedShape> comparisons(const RectifiedMaximum& shape, i64 n) {
  return {{sign_and_carry(shape.bits, shape.shift), n * shape.window},
          {{shape.bits - 1}, n * pairs_in(shape.window)}};
}

// What a number must be to be taken takes so many rounds of products: two bits, or up to four.
int product_rounds(i64 window) { return window > 2 ? 2 : 1; }

// Planes of n bytes: for each number whether it is not negative, whether it wins each of its pairs,
// and the products of these.
struct Outcomes {
  i64 n, window;
  AlignedVector<u8> positive, wins, first, second;
};

Outcomes outcomes_of(int rank, const RectifiedMaximum& shape, std::span<const u64> values,
                     std::span<const u64> differences, const std::vector<Comparison>& carries) {
  const i64 window = shape.window, n = std::ssize(values) / window;
  Outcomes all{n, window, {}, {}, {}, {}};
  all.positive.resize(window * n);
  all.first.resize(window * n);
  all.second.resize(window * n);
  all.wins.resize(2 * pairs_in(window) * n);
  const u8 flip = rank == 0 ? 1 : 0;
  const auto sign = [&](u64 x) { return static_cast<u8>(x >> (shape.bits - 1) & 1); };
  const std::span<const u8> signs = greater_of(carries[0]), less = greater_of(carries[1]);
  for (i64 i = 0; i < window * n; ++i) all.positive[i] = sign(values[i]) ^ signs[i] ^ flip;
  for (i64 pair = 0; pair < pairs_in(window); ++pair) {
    for (i64 i = 0; i < n; ++i) {
      const u8 second = sign(differences[pair * n + i]) ^ less[pair * n + i];
      all.wins[2 * pair * n + i] = second ^ flip;  // the first of equal ones wins
      all.wins[(2 * pair + 1) * n + i] = second;
    }
  }
  return all;
}

// The planes of the pairs that number g must win.
std::vector<u8*> pairs_of(Outcomes& all, i64 g) {
  std::vector<u8*> planes;
  for (i64 other = 0; other < all.window; ++other) {
    if (other == g) continue;
    const i64 pair = pair_at(all.window, std::min(g, other), std::max(g, other));
    planes.push_back(all.wins.data() + (2 * pair + (g < other ? 0 : 1)) * all.n);
  }
  return planes;
}

// first = positive & win, second = win & win; then first &= second or the last win.
std::vector<PlaneProduct> products(Outcomes& all, int round) {
  std::vector<PlaneProduct> products;
  for (i64 g = 0; g < all.window; ++g) {
    const std::vector<u8*> pairs = pairs_of(all, g);
    u8* const first = all.first.data() + g * all.n;
    u8* const second = all.second.data() + g * all.n;
    if (round == 0) {
      products.push_back({all.positive.data() + g * all.n, {{pairs[0], first, false}}});
      if (pairs.size() == 3) products.push_back({pairs[1], {{pairs[2], second, false}}});
    } else {
      products.push_back({first, {{pairs.size() == 3 ? second : pairs[1], first, false}}});
    }
  }
  return products;
}

std::vector<int> product_widths(i64 window, int round) {
  return std::vector<int>(round == 0 && window == kMost ? 2 * window : window, 1);
}

void at_once(ot::Party& party, const RectifiedMaximum& shape, std::span<const u64> x,
             std::span<u64> out) {
  const i64 window = shape.window, n = std::ssize(out);
  std::vector<u64> values(window * n), differences(pairs_in(window) * n);
  for (i64 g = 0; g < window; ++g)
    for (i64 i = 0; i < n; ++i) values[g * n + i] = x[i * window + g];
  for (i64 a = 0; a < window; ++a)
    for (i64 b = a + 1; b < window; ++b)
      for (i64 i = 0; i < n; ++i)
        differences[pair_at(window, a, b) * n + i] = values[a * n + i] - values[b * n + i];
  const std::vector<CountedShape> asked = comparisons(shape, n);
  Quotients quotients;
  quotients.shape = quotient_of(shape);
  RandomSelection chosen;
  std::vector<Comparison> carries(2);
  write_quotients(party, values, quotients);
  draw_random_selection(party, window * n, chosen);
  for (int k : {0, 1}) prepare_comparison(party, asked[k].shape, asked[k].n, carries[k]);
  for (int k : {0, 1})
    begin_comparison(party, asked[k].shape, k == 0 ? values : differences, carry_flip(party.rank),
                     carries[k]);
  read_quotients(party, quotients);
  exchange_leaves(party, carries);
  const int levels = levels_of(carries), known = levels_to_low(asked[0].shape, carries[0].plan);
  const int rounds = product_rounds(window), last = levels + rounds;
  const std::span<const u8> dropped = low_answer(asked[0].shape, carries[0]);
  Outcomes outcomes;
  PendingProducts pending;
  std::vector<u8> difference(window * n);
  AlignedVector<u64> high;
  const auto write = [&](int k) {
    if (k == known) write_carries(party, dropped, quotients);
    if (k == levels) outcomes = outcomes_of(party.rank, shape, values, differences, carries);
    if (k >= levels && k < last) write_products(party, products(outcomes, k - levels), n, pending);
    if (k < last) return;
    write_difference(party, outcomes.first, chosen.bits, difference);
    high = quotients_of(values, quotients);
    write_drawn_selection(party, high, shape.out_bits, chosen);
  };
  const auto read = [&](int k) {
    if (k == known) read_carries(party, dropped, quotients);
    if (k >= levels && k < last) read_products(party, pending);
    if (k < last) return;
    read_bits_xor(party, difference);
    read_random_selection(party, chosen);
  };
  exchange_levels(party, carries, last + 1, write, read);
  select_values(chosen, high, difference, high);
  for (i64 i = 0; i < n; ++i) {
    u64 sum = 0;
    for (i64 g = 0; g < window; ++g) sum += high[g * n + i];
    out[i] = sum & low_mask(shape.out_bits);
  }
}

void cost_at_once(ot::CostMeter& meter, i64 n, const RectifiedMaximum& shape) {
  const i64 window = shape.window, numbers = window * n;
  const std::vector<CountedShape> asked = comparisons(shape, n);
  cost_draw_quotients(meter, numbers, quotient_of(shape));
  cost_draw_random_selection(meter, numbers);
  const ComparisonPlan plan = plan_comparison(asked[0].shape, comparison_prices(meter, numbers));
  const int levels = levels_of(meter, asked), known = levels_to_low(asked[0].shape, plan);
  const int rounds = product_rounds(window);
  std::vector<Flight> more(levels + rounds + 1);
  more[known] = more[known] + carries_flight(numbers, quotient_of(shape));
  for (int round = 0; round < rounds; ++round) {
    const std::vector<int> widths = product_widths(window, round);
    cost_draw_products(meter, widths, n);
    const i64 bytes = products_bytes(widths, n);
    more[levels + round] = more[levels + round] + Flight{bytes, bytes};
  }
  const i64 opened = packed_bytes(numbers, 1);
  more.back() = Flight{opened, opened} + random_selection_flight(numbers, 1, shape.out_bits);
  cost_together(meter, asked, quotients_flight(numbers, quotient_of(shape)), std::move(more));
}

// Whether the messages that are saved, those of a comparison, are worth a comparison, a conversion
// and a selection for each further number of a window.
template <class Planner>
bool prefers_at_once(const Planner& planner, i64 n, const RectifiedMaximum& shape) {
  const ComparisonPrices prices = comparison_prices(planner, n);
  if (!prices.slow() || shape.window < 2 || shape.window > kMost) return false;
  const ComparisonPrices further{prices.correlation, 0, true};
  const ComparisonPlan plan = plan_comparison({shape.bits - 1}, prices);
  const double price = prices.correlation + kComputingBits;
  const double saved = (2 + static_cast<double>(plan.levels.size())) * prices.level;
  const double number = plan_bits(plan, further) + 3 * (price + shape.out_bits + 1) + 4 * price + 8;
  return static_cast<double>(shape.window) * number < saved;
}

i64 windows_per_chunk(i64 window) { return std::max<i64>(1, kChunk / window); }

void check(const RectifiedMaximum& shape) {
  expect(shape.window >= 1, "rectified_maximum: a window holds at least one number");
  expect(shape.shift >= 1 && shape.shift < shape.bits && shape.bits <= 64,
         "rectified_maximum: needs 1 <= shift < bits <= 64");
  expect(shape.out_bits >= 1 && shape.out_bits <= 64,
         "rectified_maximum: out_bits must be in 1..64");
}

}  // namespace

void rectified_maximum(ot::Party& party, const RectifiedMaximum& shape, std::span<const u64> x,
                       std::span<u64> out) {
  check(shape);
  const i64 n = std::ssize(out), window = shape.window;
  expect(std::ssize(x) == n * window, "rectified_maximum: x must hold `window` numbers for each");
  if (!prefers_at_once(party, n, shape)) {
    std::vector<u64> largest(n);
    maximum_windows(party, x, window, shape.bits, largest);
    return truncate_rectified(party, largest, shape.bits, shape.shift, shape.out_bits, out);
  }
  in_chunks(
      party, n, [&](ot::CostMeter& meter, i64 count) { cost_at_once(meter, count, shape); },
      [&](i64 begin, i64 count) {
        at_once(party, shape, x.subspan(begin * window, count * window), out.subspan(begin, count));
      },
      windows_per_chunk(window));
}

void cost_rectified_maximum(ot::CostMeter& meter, i64 n, const RectifiedMaximum& shape) {
  check(shape);
  if (!prefers_at_once(meter, n, shape)) {
    cost_maximum_windows(meter, n, shape.window, shape.bits);
    return cost_truncate_rectified(meter, n, shape.bits, shape.shift, shape.out_bits);
  }
  cost_in_chunks(
      meter, n, [&](ot::CostMeter& m, i64 count) { cost_at_once(m, count, shape); },
      windows_per_chunk(shape.window));
}

}  // namespace privml::twopc
