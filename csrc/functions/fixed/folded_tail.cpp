// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/folded_tail.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "twopc/width/truncation.h"

namespace privml {
namespace {

using Words = std::vector<u64>;

constexpr int kMostCovered = 16;  // arguments of so many bits are all checked
constexpr int kMostGuard = 3;     // bits of the coefficients behind the last place
constexpr int kLeastPlace = 2, kMostPlace = 10;
// What a correlation counts in the choice: silent correlations, and the work that each causes.
constexpr double kCorrelationPrice = 8;

// tail(a) at scale 56 for every a < 2^covered.
std::vector<i64> values_of(Series tail, FixedFormat in, int covered) {
  std::vector<i64> values(u64{1} << covered);
  for (u64 a = 0; a < values.size(); ++a)
    values[a] = series_value(tail, a << (kPlaceScale - in.scale));
  return values;
}

i64 error_bound(FixedFormat out) {
  return static_cast<i64>(std::ldexp(kTailError, kValueScale - out.scale));
}

// The fewest bits after which the tail may be taken for zero; 0 if there are none.
int covered_by(Series tail, FixedFormat in, FixedFormat out) {
  for (int bits = in.scale + 1; bits <= std::min(in.bits - 2, kMostCovered); ++bits)
    if (series_value(tail, u64{1} << (kPlaceScale - in.scale + bits)) < error_bound(out))
      return bits;
  return 0;
}

// The first cell from which on all values may be taken for zero.
i64 first_zero_cell(const std::vector<i64>& values, int place_bits, i64 bound) {
  i64 last = std::ssize(values) - 1;
  while (last >= 0 && values[last] < bound) --last;
  return (last >> place_bits) + 1;
}

// The chord's slope; the constant that puts the errors of the cell in the middle.
struct Line {
  i64 constant, slope;
};
Line fit_line(const i64* values, int place_bits, int scale, i64 next) {
  const i64 cell = i64{1} << place_bits;
  const int drop = kValueScale - scale;
  const i64 slope = (next - values[0] + (i64{1} << (drop - 1))) >> drop;
  i64 most = INT64_MIN, least = INT64_MAX;
  for (i64 u = 0; u < cell; ++u) {
    const i64 rest = values[u] - ((slope * u) << (drop - place_bits));
    most = std::max(most, rest);
    least = std::min(least, rest);
  }
  const i64 middle = least + (most - least) / 2;
  return {std::max<i64>((middle + (i64{1} << (drop - 1))) >> drop, 0), slope};
}

std::optional<ExponentialRange> range_of(FixedFormat in, int out_bits, u64 zero, u64 end,
                                         int value_bits) {
  ExponentialRange range{in.bits, end, 0, value_bits, out_bits};
  for (int dropped = 1; end >> dropped > 0; ++dropped)
    if ((zero - 1) >> dropped < (end >> dropped) - 1) range.dropped = dropped;
  return range.dropped > 0 ? std::optional(range) : std::nullopt;
}

u64 half_unit(const FoldedTail& f) { return f.drop > 0 ? u64{1} << (f.drop - 1) : 0; }

// The rounded value, also where it is out of the range that its ring allows.
i64 rounded_value(const FoldedTail& f, u64 a) {
  u64 sum = 0;
  clear_piecewise(f.table, {&a, 1}, {&sum, 1});
  return static_cast<i64>(sum + half_unit(f)) >> f.drop;
}

bool is_within_error(const FoldedTail& f, const std::vector<i64>& values, FixedFormat out) {
  const i64 most = i64{1} << (f.range.value_bits - 1);
  for (u64 a = 0; a < values.size(); ++a) {
    const i64 value = rounded_value(f, a);
    if (value < 0 || value >= most) return false;
    if (std::llabs((value << (kValueScale - out.scale)) - values[a]) > error_bound(out))
      return false;
  }
  return true;
}

std::optional<FoldedTail> candidate(const std::vector<i64>& values, FixedFormat in, FixedFormat out,
                                    int covered, int place_bits, int guard) {
  const int scale = out.scale + guard;
  const i64 zero = first_zero_cell(values, place_bits, error_bound(out));
  const i64 largest = *std::ranges::max_element(values) >> (kValueScale - out.scale);
  const int value_bits = std::bit_width(static_cast<u64>(largest + 1)) + 1;
  if (value_bits > out.bits) return std::nullopt;
  const auto range =
      range_of(in, out.bits, static_cast<u64>(zero) << place_bits, u64{1} << covered, value_bits);
  if (!range) return std::nullopt;
  const i64 cells = std::ssize(values) >> place_bits;
  std::vector<Words> coefficients(2, Words(cells, 0));
  for (i64 cell = 0; cell < zero; ++cell) {
    const i64 begin = cell << place_bits, end = begin + (i64{1} << place_bits);
    const Line line = fit_line(values.data() + begin, place_bits, scale, values[end]);
    coefficients[0][cell] = static_cast<u64>(line.constant);
    coefficients[1][cell] = static_cast<u64>(line.slope);
  }
  const PiecewiseShape shape{covered - place_bits, place_bits, 1, scale,
                             value_bits + guard + place_bits};
  return FoldedTail{piecewise_of(shape, std::move(coefficients)), *range, covered,
                    guard + place_bits};
}

}  // namespace

std::optional<FoldedTail> make_folded_tail(Series tail, FixedFormat in, FixedFormat out) {
  const int covered = covered_by(tail, in, out);
  if (covered == 0) return std::nullopt;
  const std::vector<i64> values = values_of(tail, in, covered);
  std::optional<FoldedTail> best;
  i64 fewest = 0;
  for (int place_bits = std::max(kLeastPlace, covered - 10);
       place_bits <= std::min(kMostPlace, covered - 1); ++place_bits)
    for (int guard = 0; guard <= kMostGuard; ++guard) {
      const auto tried = candidate(values, in, out, covered, place_bits, guard);
      if (!tried) continue;
      const i64 bits = metered_bits(
          [&](CostMeter& meter, i64 n) { cost_folded_tail(meter, n, *tried); }, kCorrelationPrice);
      if (best && bits >= fewest) continue;
      if (!is_within_error(*tried, values, out)) continue;
      best = tried;
      fewest = bits;
    }
  return best;
}

void folded_tail(Party& party, const FoldedTail& f, std::span<const u64> a, std::span<u64> out) {
  Words sum(a.size()), value(a.size());
  piecewise(party, f.table, a, sum);
  if (party.rank == 0)
    for (u64& word : sum) word += half_unit(f);
  truncate_reduce(party, sum, f.table.shape.ring_bits, f.drop, value);
  within_range(party, f.range, a, value, out);
}

void cost_folded_tail(CostMeter& meter, i64 n, const FoldedTail& f) {
  cost_piecewise(meter, n, f.table);
  cost_truncate_reduce(meter, n, f.table.shape.ring_bits, f.drop);
  cost_within_range(meter, n, f.range);
}

u64 clear_folded_tail(const FoldedTail& f, u64 a) {
  return a < f.range.end ? static_cast<u64>(rounded_value(f, a)) : 0;
}

}  // namespace privml
