// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/piecewise.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "twopc/lookup/lookup.h"
#include "twopc/lookup/split_lookup.h"
#include "twopc/product/cross_terms.h"
#include "twopc/product/multiplication.h"
#include "twopc/width/truncation.h"

namespace privml {
namespace {

using Words = std::vector<u64>;

constexpr int kLargestIndexBits = 10;
constexpr i64 kSample = 1024;  // elements of an estimate

i64 rounded(i64 value, int scale) {
  const int drop = kValueScale - scale;
  return (value + (i64{1} << (drop - 1))) >> drop;
}

// The fewest bits that hold all words.
WordFormat format_of(const std::vector<u64>& words) {
  bool is_signed = false;
  int bits = 1;
  for (u64 word : words) is_signed |= static_cast<i64>(word) < 0;
  for (u64 word : words) {
    const i64 value = static_cast<i64>(word);
    bits = std::max<int>(bits, std::bit_width(static_cast<u64>(value < 0 ? ~value : value)));
  }
  return {bits + (is_signed ? 1 : 0), is_signed};
}

int highest_power(const Piecewise& f) { return f.shape.degree; }

// Ring of the sum whose rounding gives partial sum i, or of the result.
int ring_before(const Piecewise& f, int i) {
  return i == 0 ? f.shape.ring_bits : f.partial_bits[i] + f.shape.place_bits;
}

// Ring in which the place is needed.
int place_ring(const Piecewise& f) {
  int bits = f.shape.ring_bits;
  for (int i = 1; i < highest_power(f); ++i) bits = std::max(bits, ring_before(f, i));
  return bits;
}

// Bits that hold |partial sum i| <= sum of |c_j|, j >= i, and the roundings, twice over.
std::vector<int> partial_widths(const Piecewise& f) {
  std::vector<int> bits(f.shape.degree, 0);
  for (int i = 1; i < f.shape.degree; ++i) {
    u64 most = 0;
    for (size_t cell = 0; cell < f.coefficients[0].size(); ++cell) {
      u64 sum = f.shape.degree - i;
      for (int j = i; j <= f.shape.degree; ++j)
        sum += static_cast<u64>(std::llabs(static_cast<i64>(f.coefficients[j][cell])));
      most = std::max(most, sum);
    }
    bits[i] = std::bit_width(most) + 2;
  }
  return bits;
}

// The result before it is reduced to its ring.
u64 clear_value(const Piecewise& f, u64 x) {
  const int place_bits = f.shape.place_bits;
  const u64 cell = x >> place_bits, u = x & low_mask(place_bits);
  u64 sum = f.coefficients[f.shape.degree][cell];
  for (int i = f.shape.degree - 1; i >= 0; --i) {
    sum = sum * u + (f.coefficients[i][cell] << place_bits);
    if (i == 0) break;
    sum = static_cast<u64>(static_cast<i64>(sum + (u64{1} << (place_bits - 1))) >> place_bits);
  }
  return sum;
}

// Lowers the first coefficient of cells whose ends exceed `largest`.
void limit(Piecewise& f, i64 largest) {
  const int place_bits = f.shape.place_bits;
  for (u64 cell = 0; cell < f.coefficients[0].size(); ++cell) {
    for (u64 u : {u64{0}, low_mask(place_bits)}) {
      const i64 value = static_cast<i64>(clear_value(f, cell << place_bits | u));
      if (value > largest) f.coefficients[0][cell] -= ((value - largest - 1) >> place_bits) + 1;
    }
  }
}

// The powers whose coefficients share one word of a lookup: [first, last).
struct Group {
  int first, last, bits;
};

std::vector<Group> groups_of(const std::vector<WordFormat>& formats) {
  std::vector<Group> groups;
  for (int i = 0; i < std::ssize(formats); ++i) {
    if (groups.empty() || groups.back().bits + formats[i].bits > 64) groups.push_back({i, i, 0});
    groups.back().last = i + 1;
    groups.back().bits += formats[i].bits;
  }
  return groups;
}

// What look_up asks for: per group a table, and where its words go.
struct GroupTables {
  std::vector<int> widths;
  std::vector<Words> tables, found;
  std::vector<std::span<const u64>> table_spans;
  std::vector<std::span<u64>> found_spans;
};

GroupTables tables_of(const Piecewise& f, size_t count) {
  GroupTables all;
  const i64 cells = std::ssize(f.coefficients[0]);
  for (const Group& group : groups_of(f.formats)) {
    Words table(cells, 0);
    for (int i = group.first, shift = 0; i < group.last; shift += f.formats[i++].bits)
      for (i64 c = 0; c < cells; ++c)
        table[c] |= (f.coefficients[i][c] & low_mask(f.formats[i].bits)) << shift;
    all.widths.push_back(group.bits);
    all.tables.push_back(std::move(table));
    all.found.emplace_back(count);
  }
  all.table_spans.assign(all.tables.begin(), all.tables.end());
  all.found_spans.assign(all.found.begin(), all.found.end());
  return all;
}

// XOR shares of the coefficients of every element's cell, and its place (degree 0: none).
std::vector<Words> look_up(Party& party, const Piecewise& f, std::span<const u64> x, Words& u) {
  GroupTables all = tables_of(f, x.size());
  const PiecewiseShape& shape = f.shape;
  if (shape.degree == 0) {
    lookup_tables_xor(party, shape.index_bits, all.widths, all.table_spans, x, all.found_spans);
  } else {
    split_lookup(party, {shape.index_bits, shape.place_bits, place_ring(f), all.widths},
                 all.table_spans, x, all.found_spans, u);
  }
  std::vector<Words> words(f.formats.size(), Words(x.size()));
  const std::vector<Group> groups = groups_of(f.formats);
  for (size_t g = 0; g < groups.size(); ++g)
    for (int i = groups[g].first, shift = 0; i < groups[g].last; shift += f.formats[i++].bits)
      for (size_t k = 0; k < x.size(); ++k)
        words[i][k] = (all.found[g][k] >> shift) & low_mask(f.formats[i].bits);
  return words;
}

void cost_look_up(CostMeter& meter, i64 count, const Piecewise& f) {
  std::vector<int> widths;
  for (const Group& group : groups_of(f.formats)) widths.push_back(group.bits);
  const PiecewiseShape& shape = f.shape;
  if (shape.degree == 0) return cost_lookup_tables_xor(meter, count, shape.index_bits, widths);
  cost_split_lookup(meter, count, {shape.index_bits, shape.place_bits, place_ring(f), widths});
}

LinearShape first_step(const Piecewise& f) {
  const int d = highest_power(f);
  return {f.formats[d - 1], f.shape.place_bits, f.formats[d], ring_before(f, d - 1)};
}

FactorFormat partial_factor(const Piecewise& f, int i) { return {f.partial_bits[i], false, true}; }
FactorFormat place_factor(int ring) { return {ring, false, false}; }

// From the unrounded partial sum i the unrounded partial sum i - 1, in place.
void horner_step(Party& party, const Piecewise& f, int i, const Words& coefficient, const Words& u,
                 Words& sum) {
  const size_t n = sum.size();
  const int place_bits = f.shape.place_bits, bits = f.partial_bits[i], from = ring_before(f, i),
            to = ring_before(f, i - 1);
  const u64 offset = u64{1} << (bits - 2);
  Words partial(n), constant(n);
  if (party.rank == 0)
    for (u64& word : sum) word += u64{1} << (place_bits - 1);
  truncate_reduce(party, sum, from, place_bits, partial);
  if (party.rank == 0)
    for (u64& word : partial) word = (word + offset) & low_mask(bits);
  multiply(party, partial, partial_factor(f, i), u, place_factor(to), to, sum);
  word_to_ring(party, coefficient, f.formats[i - 1], to - place_bits, constant);
  for (size_t k = 0; k < n; ++k)
    sum[k] = (sum[k] - offset * u[k] + (constant[k] << place_bits)) & low_mask(to);
}

void cost_horner_step(CostMeter& meter, i64 n, const Piecewise& f, int i) {
  const int from = ring_before(f, i), to = ring_before(f, i - 1);
  cost_truncate_reduce(meter, n, from, f.shape.place_bits);
  cost_multiply(meter, n, partial_factor(f, i), place_factor(to), to);
  cost_word_to_ring(meter, n, f.formats[i - 1], to - f.shape.place_bits);
}

// Coefficients of about the widths that a series' table will have.
Piecewise outline(const PiecewiseTask& task, const PiecewiseShape& shape) {
  Piecewise f{shape, {}, {}, std::vector<int>(shape.degree, 0)};
  for (int i = 0; i <= shape.degree; ++i) {
    const int cell = task.fraction - shape.place_bits;  // cells have length 2^-cell
    const int bits = i == 0 ? shape.scale + 2 : std::max(shape.scale - i * cell, 1) + 1;
    f.formats.push_back({std::clamp(bits, 1, 64), i > 0});
    if (i > 0 && i < shape.degree) f.partial_bits[i] = bits + 2;
  }
  return f;
}

bool fits(const Piecewise& f) {
  for (int i = 1; i < f.shape.degree; ++i)
    if (ring_before(f, i) > 64 || f.partial_bits[i] > ring_before(f, i - 1)) return false;
  return f.shape.ring_bits <= 64;
}

i64 outline_bits(const Piecewise& f) {
  return metered_bits([&](CostMeter& meter, i64 count) { cost_piecewise(meter, count, f); });
}

// Cells of the greatest length that keeps the error of `degree` below 2^-precision.
std::optional<PiecewiseShape> shape_of_degree(const PiecewiseTask& task, int degree) {
  PiecewiseShape shape{task.selectors + task.bits, 0, degree, task.scale, task.ring_bits};
  if (degree > 0) {
    const int sixteenths = series_error(task.series, degree) + 16 * task.precision;
    const int cell = static_cast<int>(ceil_div(std::max(sixteenths, 0), 16 * (degree + 1)));
    const int widest = std::min(task.bits - 1, 64 - task.ring_bits);
    shape.place_bits = std::min(task.fraction - cell, widest);
    if (shape.place_bits < 1) return std::nullopt;
    shape.index_bits = task.selectors + task.bits - shape.place_bits;
    shape.ring_bits += shape.place_bits;
  }
  if (shape.index_bits < 1 || shape.index_bits > kLargestIndexBits) return std::nullopt;
  return shape;
}

}  // namespace

Piecewise make_piecewise(const PiecewiseShape& shape, const std::function<i64(i64, u64)>& value,
                         i64 largest) {
  const int degree = shape.degree;
  const i64 cells = i64{1} << shape.index_bits;
  Piecewise f{shape, {}, {}, {}};
  f.coefficients.assign(degree + 1, Words(cells));
  std::vector<i64> values(degree + 1), fitted(degree + 1);
  for (i64 cell = 0; cell < cells; ++cell) {
    if (degree == 0) {
      fitted[0] = value(cell, 0);
    } else {
      for (int j = 0; j <= degree; ++j) values[j] = value(cell, fitting_place(degree, j));
      fit_polynomial(degree, values.data(), fitted.data());
    }
    for (int i = 0; i <= degree; ++i)
      f.coefficients[i][cell] = static_cast<u64>(rounded(fitted[i], shape.scale));
  }
  limit(f, largest);
  return piecewise_of(shape, std::move(f.coefficients));
}

Piecewise piecewise_of(const PiecewiseShape& shape, std::vector<Words> coefficients) {
  Piecewise f{shape, std::move(coefficients), {}, {}};
  for (const Words& words : f.coefficients) f.formats.push_back(format_of(words));
  f.partial_bits = partial_widths(f);
  expect(fits(f), "piecewise: the formats need numbers of more than 64 bits");
  return f;
}

void piecewise(Party& party, const Piecewise& f, std::span<const u64> x, std::span<u64> out) {
  const PiecewiseShape& shape = f.shape;
  expect(x.size() == out.size(), "piecewise: input and output lengths differ");
  Words u(x.size());
  const std::vector<Words> words = look_up(party, f, x, u);
  if (shape.degree == 0) return word_to_ring(party, words[0], f.formats[0], shape.ring_bits, out);
  Words sum(x.size());
  const int d = highest_power(f);
  linear_words(party, first_step(f), words[d - 1], words[d], u, sum);
  for (int i = d - 1; i > 0; --i) horner_step(party, f, i, words[i - 1], u, sum);
  std::ranges::copy(sum, out.begin());
}

void cost_piecewise(CostMeter& meter, i64 count, const Piecewise& f) {
  const PiecewiseShape& shape = f.shape;
  cost_look_up(meter, count, f);
  if (shape.degree == 0) return cost_word_to_ring(meter, count, f.formats[0], shape.ring_bits);
  cost_linear_words(meter, count, first_step(f));
  for (int i = highest_power(f) - 1; i > 0; --i) cost_horner_step(meter, count, f, i);
}

void clear_piecewise(const Piecewise& f, std::span<const u64> x, std::span<u64> out) {
  const u64 mask = low_mask(f.shape.index_bits + f.shape.place_bits);
  for (size_t k = 0; k < x.size(); ++k) out[k] = clear_value(f, x[k] & mask);
}

namespace {

std::optional<PiecewiseShape> best_piecewise(const PiecewiseTask& task) {
  std::optional<PiecewiseShape> best;
  i64 fewest = 0;
  for (int degree = 0; degree <= kLargestDegree; ++degree) {
    const auto shape = shape_of_degree(task, degree);
    if (!shape || !fits(outline(task, *shape))) continue;
    const i64 bits = outline_bits(outline(task, *shape));
    if (!best || bits < fewest) {
      best = shape;
      fewest = bits;
    }
  }
  return best;
}

}  // namespace

PiecewiseShape choose_piecewise(const PiecewiseTask& task) {
  const auto best = best_piecewise(task);
  expect(best.has_value(), "piecewise: no table fits these formats");
  return *best;
}

bool has_piecewise(const PiecewiseTask& task) { return best_piecewise(task).has_value(); }

i64 estimated_bits(const PiecewiseTask& task, const PiecewiseShape& shape) {
  return outline_bits(outline(task, shape));
}

i64 metered_bits(const std::function<void(CostMeter&, i64)>& cost, double correlation_bits) {
  CostMeter meter(RcotCost{"ideal", 0, 1, 1});
  meter.correlation_bits = correlation_bits;
  cost(meter, kSample);
  const double correlations = static_cast<double>(meter.cots[0] + meter.cots[1]);
  return (8 * (meter.bytes[0] + meter.bytes[1]) +
          static_cast<i64>(correlation_bits * correlations)) /
         kSample;
}

}  // namespace privml
