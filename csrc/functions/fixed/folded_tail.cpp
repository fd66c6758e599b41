// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/folded_tail.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "functions/fixed/evaluation.h"
#include "twopc/compare/comparison_plan.h"

namespace privml::fixed {
namespace {

using Words = std::vector<u64>;

constexpr int kMostCovered = 16;  // arguments of so many bits are all checked
constexpr int kMostGuard = 3;     // bits of the coefficients behind the last place
constexpr int kLeastPlace = 2, kMostPlace = 10;
// What a correlation counts in the choice: silent correlations, and the work that each causes.
constexpr double kCorrelationPrice = 8;

// tail(a) at scale 56 for every a <= 2^covered.
std::vector<i64> values_of(Series tail, FixedFormat in, int covered) {
  std::vector<i64> values((u64{1} << covered) + 1);
  for (u64 a = 0; a < values.size(); ++a)
    values[a] = series_value(tail, a << (kPlaceScale - in.scale));
  return values;
}

i64 error_bound(FixedFormat out) {
  return static_cast<i64>(std::ldexp(kTailError, kValueScale - out.scale));
}

// The fewest bits after which the tail may be taken for zero, or those of all arguments; 0 if these
// are too many.
int covered_by(Series tail, FixedFormat in, FixedFormat out) {
  for (int bits = in.scale + 1; bits <= std::min(in.bits - 2, kMostCovered); ++bits)
    if (series_value(tail, u64{1} << (kPlaceScale - in.scale + bits)) < error_bound(out))
      return bits;
  return in.bits - 1 <= kMostCovered ? in.bits - 1 : 0;
}

// The first cell from which on all values may be taken for zero.
i64 first_zero_cell(const std::vector<i64>& values, int place_bits, i64 bound) {
  i64 last = std::ssize(values) - 2;
  while (last >= 0 && values[last] < bound) --last;
  return (last >> place_bits) + 1;
}

// What lies in the middle of a cell's distances from its chord.
i64 middle_distance(std::span<const i64> values, i64 begin, int place_bits) {
  const i64 cell = i64{1} << place_bits, first = values[begin], rise = values[begin + cell] - first;
  // rise * u does not fit 64 bits, so the chord is computed from two parts of its rise.
  const i64 whole = rise >> place_bits, rest = rise & (cell - 1);
  i64 most = 0, least = 0;
  for (i64 u = 1; u < cell; ++u) {
    const i64 distance = values[begin + u] - first - (whole * u + ((rest * u) >> place_bits));
    most = std::max(most, distance);
    least = std::min(least, distance);
  }
  return least + (most - least) / 2;
}

// Values at the borders of cells of a continuous function that is linear on each, and 0 from cell
// `zero` on.
std::vector<i64> borders(std::span<const i64> values, i64 zero, int place_bits, int scale) {
  const i64 cells = std::ssize(values) >> place_bits;
  const auto rounded = [&](i64 value) {
    const int drop = kValueScale - scale;
    return std::max<i64>((value + (i64{1} << (drop - 1))) >> drop, 0);
  };
  std::vector<i64> at(cells + 1, 0);
  i64 before = 0;
  for (i64 cell = 0; cell < zero; ++cell) {
    const i64 begin = cell << place_bits, after = middle_distance(values, begin, place_bits);
    at[cell] = rounded(values[begin] + (cell == 0 ? after : (before + after) / 2));
    before = after;
  }
  if (zero == cells) at[cells] = rounded(values[cells << place_bits] + before);
  return at;
}

// Cells from `zero` on are zero; those from `end` on are not in the table.
std::optional<ExponentialRange> range_of(int bits, int out_bits, u64 zero, u64 end,
                                         int value_bits) {
  if (end >> (bits - 1) != 0) return ExponentialRange{bits, 0, 0, value_bits, out_bits};
  ExponentialRange range{bits, end, 0, value_bits, out_bits};
  for (int dropped = 1; end >> dropped > 0; ++dropped)
    if ((zero - 1) >> dropped < (end >> dropped) - 1) range.dropped = dropped;
  return range.dropped > 0 ? std::optional(range) : std::nullopt;
}

// The rounded value, also if it is out of the range that its ring allows.
i64 rounded_value(const FoldedTail& f, u64 a) {
  const int place_bits = f.table.shape.place_bits;
  const u64 cell = std::min(a >> place_bits, low_mask(f.table.shape.index_bits));
  const u64 sum = clear_piecewise(f.table, cell, a - (cell << place_bits));
  return static_cast<i64>(sum + functions::half_of(f.drop)) >> f.drop;
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

struct TailShape {
  int covered, place_bits;
  int guard;  // bits of the coefficients behind the last place
  int ramp;   // cells after those that are not zero on which the lines fall to zero
};

std::optional<FoldedTail> candidate(const std::vector<i64>& values, FixedFormat in, FixedFormat out,
                                    const TailShape& tried) {
  const auto [covered, place_bits, guard, ramp] = tried;
  const int scale = out.scale + guard;
  const i64 cells = i64{1} << (covered - place_bits);
  const i64 zero = std::min(first_zero_cell(values, place_bits, error_bound(out)) + ramp, cells);
  const i64 largest = *std::ranges::max_element(values) >> (kValueScale - out.scale);
  const int value_bits = std::bit_width(static_cast<u64>(largest + 1)) + 1;
  if (value_bits > out.bits) return std::nullopt;
  const auto range = range_of(in.bits - place_bits, out.bits, static_cast<u64>(zero),
                              u64{1} << (covered - place_bits), value_bits);
  if (!range) return std::nullopt;
  std::vector<Words> coefficients(2, Words(cells, 0));
  const std::vector<i64> at = borders(values, zero, place_bits, scale);
  for (i64 cell = 0; cell < cells; ++cell) {
    coefficients[0][cell] = static_cast<u64>(at[cell]);
    coefficients[1][cell] = static_cast<u64>(at[cell + 1] - at[cell]);
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
  const auto consider = [&](const TailShape& shape) {
    const auto tried = candidate(values, in, out, shape);
    if (!tried) return;
    FoldedTail priced = *tried;
    priced.table.apart = true;
    const i64 bits =
        evaluated_bits([&](functions::Evaluator& evaluator,
                           const functions::RingShares& a) { folded_tail(evaluator, priced, a); },
                       {kCorrelationPrice, twopc::kLevelBits});
    if ((best && bits >= fewest) || !is_within_error(*tried, values, out)) return;
    best = tried;
    fewest = bits;
  };
  for (int place_bits = std::max(kLeastPlace, covered - 10);
       place_bits <= std::min(kMostPlace, covered - 1); ++place_bits)
    for (int guard = 0; guard <= kMostGuard; ++guard)
      for (int ramp : {0, 1}) consider({covered, place_bits, guard, ramp});
  return best;
}

FoldedValue folded_tail(functions::Evaluator& evaluator, const FoldedTail& f,
                        const functions::RingShares& x) {
  const int place_bits = f.table.shape.place_bits;
  FoldedPiecewise found = folded_piecewise(evaluator, f.table, f.range.bits + place_bits, x);
  const functions::RingShares sum =
      evaluator.plus(std::move(found.sum), functions::half_of(f.drop));
  return {within_range(evaluator, f.range, found.high, sum, f.drop), std::move(found.positive),
          std::move(found.nonnegative)};
}

u64 clear_folded_tail(const FoldedTail& f, i64 x) {
  const u64 a = static_cast<u64>(x < 0 ? -x : x);
  return a <= u64{1} << f.covered ? static_cast<u64>(rounded_value(f, a)) : 0;
}

}  // namespace privml::fixed
