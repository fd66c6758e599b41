// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/nonzero_bit.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "twopc/compare/comparison_plan.h"
#include "twopc/compare/prefix.h"
#include "twopc/lookup/digits.h"
#include "twopc/lookup/two_way_transfer.h"
#include "twopc/select/bit_products.h"
#include "twopc/session/chunk.h"

namespace privml::twopc {
namespace {

using Beside = std::function<void()>;
using Next = std::function<Flight()>;

constexpr int kUsualDigit = 4, kLargestDigit = 7;

i64 chunk_limit(int ell) { return std::max<i64>(kChunk / digit_count(ell, kUsualDigit), 1); }

// The digits: `count` of them, of `size` bits but the top one of `top` bits.
struct Cut {
  int ell, size;
  i64 count;
  int top;
  int bits(i64 digit) const { return digit + 1 < count ? size : top; }
};

Cut cut_into(int ell, int size) {
  const int count = static_cast<int>(digit_count(ell, size));
  return {ell, size, count, ell - (count - 1) * size};
}

// What a digit's transfer tells, from its lowest bit: the place of the highest one of the sum of
// shares and, but for the lowest digit, of the sum and one; then, but for the top digit, the carry
// and, if it is not the lowest one, whether the sum is 2^bits.
struct Kind {
  i64 first, count;  // digits
  int bits;
  bool lowest, top;
  int places() const { return lowest ? bits : 2 * bits; }
  int width() const { return places() + (top ? 0 : lowest ? 1 : 2); }
};

std::vector<Kind> kinds_of(const Cut& cut) {
  if (cut.count == 1) return {{0, 1, cut.top, true, true}};
  std::vector<Kind> kinds{{0, 1, cut.size, true, false}};
  if (cut.count > 2) kinds.push_back({1, cut.count - 2, cut.size, false, false});
  kinds.push_back({cut.count - 1, 1, cut.top, false, true});
  return kinds;
}

u64 highest_one(u64 value) { return value == 0 ? 0 : u64{1} << (std::bit_width(value) - 1); }

// By the sum of the shares, 2^(bits + 1) - 1 entries.
std::vector<u64> entries_of(const Kind& kind) {
  const u64 end = u64{1} << kind.bits;
  std::vector<u64> entries;
  for (u64 sum = 0; sum + 1 < 2 * end; ++sum) {
    u64 entry = highest_one(sum & (end - 1));
    if (!kind.lowest) entry |= highest_one((sum + 1) & (end - 1)) << kind.bits;
    if (!kind.top) entry |= static_cast<u64>(sum >= end) << kind.places();
    if (!kind.top && !kind.lowest) entry |= static_cast<u64>(sum == end) << (kind.places() + 1);
    entries.push_back(entry);
  }
  return entries;
}

// Factors of the products of a prefix level, of the choice by the carries and of the last products.
std::vector<int> level_widths(const PrefixLevel& level) {
  std::vector<int> widths;
  for (i64 i = 0; i < std::ssize(level.nodes); ++i) {
    const int complete = i < level.complete ? 1 : 2;
    widths.insert(widths.end(), {complete, 2, complete});
  }
  return widths;
}

std::vector<int> choice_widths(const Cut& cut) {
  std::vector<int> widths;
  for (i64 j = 1; j < cut.count; ++j) widths.push_back(cut.bits(j) + 1);
  return widths;
}

std::vector<int> keep_widths(const Cut& cut) { return std::vector<int>(cut.count - 1, cut.size); }

double wire_bits(const Cut& cut, ComparisonPrices prices) {
  const double price = prices.correlation + kComputingBits;
  double bits = 0;
  for (const Kind& kind : kinds_of(cut))
    bits += static_cast<double>(kind.count) *
            (kind.bits * (price + 1) + static_cast<double>(kind.width() << kind.bits));
  const auto add = [&](const std::vector<int>& widths) {
    for (int width : widths) bits += 2 * price + 2 * (1 + width);
  };
  for (const PrefixLevel& level : prefix_levels(cut.count - 1)) {
    add(level_widths(level));
    bits += prices.level;
  }
  if (cut.count == 1) return bits;
  add(choice_widths(cut));
  add(keep_widths(cut));
  return bits + 2 * prices.level;
}

Cut best_cut(int ell, ComparisonPrices prices) {
  Cut best = cut_into(ell, std::min(ell, kUsualDigit));
  for (int size = 2; size <= std::min(ell, kLargestDigit); ++size) {
    const Cut cut = cut_into(ell, size);
    if (wire_bits(cut, prices) < wire_bits(best, prices)) best = cut;
  }
  return best;
}

// Planes of n bytes. Of digits, by digit: `places` at (digit * size + place), without a carry and
// with the difference that a carry makes beside it; `carry` out of the digits below the top one,
// and `ones`, whether a carry into a digit would leave it. Of digits from the top down, by their
// distance from it: whether the digits down to this one are all zero without a carry (`zero`:
// because all shares are, `power`: because their sum is a power of two; once a range reaches the
// top, `power` holds both), and with one (`filled`).
struct Planes {
  Cut cut;
  i64 n;
  AlignedVector<u8> places, differences, carry, ones, power, zero, filled;

  Planes(const Cut& of, i64 length) : cut(of), n(length) {
    places.resize(cut.count * cut.size * n);
    differences.resize(cut.count * cut.size * n);
    for (AlignedVector<u8>* const planes : {&carry, &ones, &power, &zero, &filled})
      planes->resize((cut.count - 1) * n);
  }
  u8* at(AlignedVector<u8>& planes, i64 position) const { return planes.data() + position * n; }
  i64 place(i64 digit, int bit) const { return digit * cut.size + bit; }
};

void write_planes(Planes& planes, const Kind& kind, std::span<const u64> entries, u8 first) {
  const i64 n = planes.n;
  const auto bit = [](u64 word, int place) { return static_cast<u8>(word >> place & 1); };
  for (i64 d = 0; d < kind.count; ++d) {
    const i64 digit = kind.first + d, from_top = planes.cut.count - 1 - digit;
    for (i64 k = 0; k < n; ++k) {
      const u64 entry = entries[d * n + k];
      const u64 with = entry >> kind.bits;
      u8 any = 0, any_with = 0;
      for (int b = 0; b < kind.bits; ++b) {
        planes.at(planes.places, planes.place(digit, b))[k] = bit(entry, b);
        planes.at(planes.differences, planes.place(digit, b))[k] = bit(entry ^ with, b);
        any ^= bit(entry, b);
        any_with ^= bit(with, b);
      }
      const u8 power = kind.top ? 0 : bit(entry, kind.places() + 1);
      if (!kind.top) planes.at(planes.carry, digit)[k] = bit(entry, kind.places());
      if (kind.lowest) continue;
      if (!kind.top) planes.at(planes.ones, digit)[k] = any_with ^ first;
      planes.at(planes.filled, from_top)[k] = any_with ^ first;
      planes.at(planes.zero, from_top)[k] = any ^ first ^ power;
      planes.at(planes.power, from_top)[k] = kind.top ? any ^ first : power;
    }
  }
}

// Party 0 sends for the first half of a kind's digits, party 1 for the rest.
void transfer_digits(ot::Party& party, std::span<const u64> x, Planes& planes,
                     const Beside& beside) {
  const i64 n = planes.n;
  const std::vector<Kind> kinds = kinds_of(planes.cut);
  std::vector<AlignedVector<u64>> messages(kinds.size()), found(kinds.size());
  std::vector<std::vector<u8>> choices(kinds.size());
  std::vector<TwoWayTransfer> transfers;
  for (size_t i = 0; i < kinds.size(); ++i) {
    const Kind& kind = kinds[i];
    const i64 total = kind.count * n, half = (total + 1) / 2;
    const i64 send_first = party.rank == 0 ? 0 : half,
              send_count = party.rank == 0 ? half : total - half;
    const i64 pick_first = half - send_first, pick_count = total - send_count;
    const auto share = [&](i64 at) {
      const i64 digit = kind.first + at / n;
      return x[at % n] >> (digit * planes.cut.size) & low_mask(kind.bits);
    };
    const std::vector<u64> entries = entries_of(kind);
    const i64 size = i64{1} << kind.bits;
    found[i].resize(total);
    messages[i].resize(send_count * size);
    choices[i].resize(pick_count);
    const std::span<u64> masks = std::span(found[i]).subspan(send_first, send_count);
    party.prg.fill_ring(masks, kind.width());
    for (i64 s = 0; s < send_count; ++s) {
      const u64* const row = entries.data() + share(send_first + s);
      for (i64 j = 0; j < size; ++j) messages[i][s * size + j] = row[j] ^ masks[s];
    }
    for (i64 p = 0; p < pick_count; ++p) choices[i][p] = static_cast<u8>(share(pick_first + p));
    transfers.push_back({messages[i], choices[i], kind.bits, kind.width(),
                         std::span(found[i]).subspan(pick_first, pick_count)});
  }
  two_way_transfers(party, transfers, beside);
  for (size_t i = 0; i < kinds.size(); ++i)
    write_planes(planes, kinds[i], found[i], party.rank == 0 ? 1 : 0);
}

void multiply(ot::Party& party, std::vector<PlaneProduct> products, i64 n, const Beside& beside) {
  PendingProducts pending;
  write_products(party, std::move(products), n, pending);
  if (beside) beside();
  read_products(party, pending);
}

// Upwards carry_high ^= ones_high & carry_low. Downwards the range of lower digits, `high`, takes
// the higher ones, `low`, without a carry if its own shares are zero, else with one.
void run_level(ot::Party& party, const PrefixLevel& level, Planes& planes, const Beside& beside) {
  const i64 n = planes.n, nodes = std::ssize(level.nodes);
  AlignedVector<u8> without(nodes * n);
  std::vector<PlaneProduct> products;
  for (i64 i = 0; i < nodes; ++i) {
    const auto [high, low] = level.nodes[i];
    const auto at = [&](AlignedVector<u8>& of, i64 position) { return planes.at(of, position); };
    PlaneProduct up{at(planes.ones, high), {{at(planes.carry, low), at(planes.carry, high), true}}};
    PlaneProduct down{at(planes.filled, low),
                      {{at(planes.power, high), at(planes.power, high), false},
                       {at(planes.filled, high), at(planes.filled, high), false}}};
    PlaneProduct straight{at(planes.zero, high),
                          {{at(planes.power, low), without.data() + i * n, false}}};
    if (i >= level.complete) {
      up.factors.push_back({at(planes.ones, low), at(planes.ones, high), false});
      straight.factors.push_back({at(planes.zero, low), at(planes.zero, high), false});
    }
    products.insert(products.end(), {std::move(up), std::move(down), std::move(straight)});
  }
  multiply(party, std::move(products), n, beside);
  for (i64 i = 0; i < nodes; ++i) {
    u8* const power = planes.at(planes.power, level.nodes[i].high);
    for (i64 k = 0; k < n; ++k) power[k] ^= without[i * n + k];
  }
}

// The carries choose the places of their digits, and of the higher digits whether they are zero.
void choose_by_carries(ot::Party& party, Planes& planes, const Beside& beside) {
  std::vector<PlaneProduct> products;
  for (i64 j = 1; j < planes.cut.count; ++j) {
    const i64 above = planes.cut.count - 1 - j;
    u8* const zero = planes.at(planes.power, above);
    u8* const filled = planes.at(planes.filled, above);
    for (i64 k = 0; k < planes.n; ++k) filled[k] ^= zero[k];
    PlaneProduct product{planes.at(planes.carry, j - 1), {{filled, zero, true}}};
    for (int b = 0; b < planes.cut.bits(j); ++b) {
      const i64 place = planes.place(j, b);
      product.factors.push_back(
          {planes.at(planes.differences, place), planes.at(planes.places, place), true});
    }
    products.push_back(std::move(product));
  }
  multiply(party, std::move(products), planes.n, beside);
}

void keep_where_higher_are_zero(ot::Party& party, Planes& planes, const Beside& beside) {
  std::vector<PlaneProduct> products;
  for (i64 j = 0; j + 1 < planes.cut.count; ++j) {
    PlaneProduct product{planes.at(planes.power, planes.cut.count - 2 - j), {}};
    for (int b = 0; b < planes.cut.size; ++b) {
      u8* const place = planes.at(planes.places, planes.place(j, b));
      product.factors.push_back({place, place, false});
    }
    products.push_back(std::move(product));
  }
  multiply(party, std::move(products), planes.n, beside);
}

// Place 0: the complement of all others, or its own bit.
enum class Zero { is_place_0, is_none };

void one_hot_chunk(ot::Party& party, std::span<const u64> x, int ell, Zero zero, std::span<u8> out,
                   const Beside& beside) {
  const i64 n = std::ssize(x);
  Planes planes(best_cut(ell, comparison_prices(party, n)), n);
  transfer_digits(party, x, planes, beside);
  for (const PrefixLevel& level : prefix_levels(planes.cut.count - 1))
    run_level(party, level, planes, beside);
  if (planes.cut.count > 1) {
    choose_by_carries(party, planes, beside);
    keep_where_higher_are_zero(party, planes, beside);
  }
  if (beside) beside();
  for (i64 k = 0; k < n; ++k) {
    u8 others = party.rank == 0 ? 1 : 0;
    for (i64 place = 1; place < ell; ++place) {
      const u8 bit = planes.places[place * n + k];
      out[k * ell + place] = bit;
      others ^= bit;
    }
    out[k * ell] = zero == Zero::is_place_0 ? others : planes.places[k];
  }
}

void cost_one_hot_chunk(ot::CostMeter& meter, i64 n, int ell, const Next& next) {
  const auto cost_products = [&](const std::vector<int>& widths) {
    cost_draw_products(meter, widths, n);
    const i64 opened = products_bytes(widths, n);
    cost_flight(meter, Flight{opened, opened} + (next ? next() : Flight{}));
  };
  const Cut cut = best_cut(ell, comparison_prices(meter, n));
  std::vector<TwoWayShape> shapes;
  for (const Kind& kind : kinds_of(cut)) {
    const i64 total = kind.count * n;
    shapes.push_back({{(total + 1) / 2, total / 2}, kind.bits, kind.width()});
  }
  cost_two_way_transfers(meter, shapes, next);
  for (const PrefixLevel& level : prefix_levels(cut.count - 1)) cost_products(level_widths(level));
  if (cut.count == 1) return;
  cost_products(choice_widths(cut));
  cost_products(keep_widths(cut));
}

// `next` counts flights, so it is not called where correlations are counted.
void cost_run(ot::CostMeter& meter, i64 count, int ell, const Next& next) {
  const auto alone = [&](ot::CostMeter& m, i64 n) { cost_one_hot_chunk(m, n, ell, {}); };
  if (!next) return cost_in_chunks(meter, count, alone, chunk_limit(ell));
  const auto cots = ot::count_correlations(meter, [&](ot::CostMeter& m) { alone(m, count); });
  meter.reserve(cots[0], cots[1]);
  cost_one_hot_chunk(meter, count, ell, next);
}

void run(ot::Party& party, std::span<const u64> x, int ell, Zero zero, std::span<u8> one_hot,
         const Beside& beside = {}) {
  expect(ell >= 1 && ell <= 64, "most_significant_nonzero_bit: ell must lie in 1..64");
  expect(std::ssize(one_hot) == std::ssize(x) * ell,
         "most_significant_nonzero_bit: ell output bits per element");
  in_chunks(
      party, std::ssize(x), [&](ot::CostMeter& m, i64 n) { cost_one_hot_chunk(m, n, ell, {}); },
      [&](i64 begin, i64 n) {
        one_hot_chunk(party, x.subspan(begin, n), ell, zero, one_hot.subspan(begin * ell, n * ell),
                      beside);
      },
      chunk_limit(ell));
}

}  // namespace

void most_significant_nonzero_bit(ot::Party& party, std::span<const u64> x, int ell,
                                  std::span<u8> one_hot) {
  run(party, x, ell, Zero::is_place_0, one_hot);
}

void most_significant_nonzero_bit_or_none(ot::Party& party, std::span<const u64> x, int ell,
                                          std::span<u8> one_hot,
                                          const std::function<void()>& beside) {
  expect(!beside || std::ssize(x) <= nonzero_bit_chunk(ell, party.chunk_factor),
         "most_significant_nonzero_bit: only one chunk shares its flights");
  run(party, x, ell, Zero::is_none, one_hot, beside);
}

void cost_most_significant_nonzero_bit(ot::CostMeter& meter, i64 count, int ell) {
  cost_run(meter, count, ell, {});
}

void cost_most_significant_nonzero_bit_or_none(ot::CostMeter& meter, i64 count, int ell,
                                               const std::function<Flight()>& next) {
  cost_run(meter, count, ell, next);
}

i64 nonzero_bit_chunk(int ell, i64 chunk_factor) { return chunk_limit(ell) * chunk_factor; }

void one_hot_select(std::span<const u8> one_hot, std::span<const u64> table, std::span<u64> out) {
  const size_t size = table.size();
  expect(one_hot.size() == out.size() * size, "one_hot_select: table.size() bits per output word");
  for (size_t k = 0; k < out.size(); ++k) {
    u64 word = 0;
    for (size_t j = 0; j < size; ++j) word ^= table[j] & (u64{0} - one_hot[k * size + j]);
    out[k] = word;
  }
}

}  // namespace privml::twopc
