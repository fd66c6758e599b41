// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/piecewise.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "functions/fixed/evaluation.h"
#include "twopc/lookup/lookup.h"

namespace privml::fixed {
namespace {

using Words = std::vector<u64>;

constexpr int kLargestIndexBits = 10;

i64 rounded(i64 value, int scale) {
  const int drop = kValueScale - scale;
  return (value + (i64{1} << (drop - 1))) >> drop;
}

// The fewest bits that hold all words.
twopc::WordFormat format_of(const std::vector<u64>& words) {
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
u64 value_at(const Piecewise& f, u64 cell, u64 u) {
  const int place_bits = f.shape.place_bits;
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
      const i64 value = static_cast<i64>(value_at(f, cell, u));
      if (value > largest) f.coefficients[0][cell] -= ((value - largest - 1) >> place_bits) + 1;
    }
  }
}

// The powers whose coefficients share one word of a lookup: [first, last).
struct Group {
  int first, last, bits;
};

std::vector<Group> groups_of(const std::vector<twopc::WordFormat>& formats) {
  std::vector<Group> groups;
  for (int i = 0; i < std::ssize(formats); ++i) {
    if (groups.empty() || groups.back().bits + formats[i].bits > 64) groups.push_back({i, i, 0});
    groups.back().last = i + 1;
    groups.back().bits += formats[i].bits;
  }
  return groups;
}

// Per group of powers a table of their coefficients, side by side.
std::vector<Words> tables_of(const Piecewise& f) {
  std::vector<Words> tables;
  const i64 cells = std::ssize(f.coefficients[0]);
  for (const Group& group : groups_of(f.formats)) {
    Words& table = tables.emplace_back(cells, 0);
    for (int i = group.first, shift = 0; i < group.last; shift += f.formats[i++].bits)
      for (i64 c = 0; c < cells; ++c)
        table[c] |= (f.coefficients[i][c] & low_mask(f.formats[i].bits)) << shift;
  }
  return tables;
}

twopc::LinearShape first_step(const Piecewise& f) {
  const int d = highest_power(f);
  return {f.formats[d - 1], f.shape.place_bits, f.formats[d], ring_before(f, d - 1)};
}

PlacedWord place_of(const Piecewise& f, int power) {
  const std::vector<Group> groups = groups_of(f.formats);
  PlacedWord word;
  while (groups[word.table].last <= power) ++word.table;
  for (int i = groups[word.table].first; i < power; ++i) word.offset += f.formats[i].bits;
  return word;
}

std::vector<int> widths_of(const Piecewise& f) {
  std::vector<int> widths;
  for (const Group& group : groups_of(f.formats)) widths.push_back(group.bits);
  return widths;
}

// XOR shares of the coefficients of every element's cell, its place and the first step's sum.
struct Cells {
  std::vector<functions::RingShares> words;
  functions::RingShares u, sum;
};

// The coefficients in the words of the tables.
std::vector<functions::RingShares> coefficients_of(
    functions::Evaluator& evaluator, const Piecewise& f,
    const std::vector<functions::RingShares>& found) {
  std::vector<functions::RingShares> words;
  for (int i = 0; i < std::ssize(f.formats); ++i) {
    const auto [table, offset] = place_of(f, i);
    words.push_back(evaluator.map(found[table].count, f.formats[i].bits,
                                  [&](i64 k) { return found[table][k] >> offset; }));
  }
  return words;
}

twopc::FactorFormat partial_factor(const Piecewise& f, int i) {
  return {f.partial_bits[i], false, true};
}
twopc::FactorFormat place_factor(int ring) { return {ring, false, false}; }

// From the unrounded partial sum i the unrounded partial sum i - 1.
functions::RingShares horner_step(functions::Evaluator& evaluator, const Piecewise& f, int i,
                                  const Cells& cells, const functions::RingShares& sum) {
  const int place_bits = f.shape.place_bits, bits = f.partial_bits[i], to = ring_before(f, i - 1);
  const u64 offset = u64{1} << (bits - 2);
  const functions::RingShares rounded = evaluator.round_off(sum, ring_before(f, i), place_bits);
  const u64 added = evaluator.constant(offset);
  const functions::RingShares partial =
      evaluator.map(sum.count, bits, [&](i64 k) { return rounded[k] + added; });
  const functions::RingShares product =
      evaluator.multiply(partial, partial_factor(f, i), cells.u, place_factor(to), to);
  const functions::RingShares constant =
      evaluator.word_to_ring(cells.words[i - 1], f.formats[i - 1], to - place_bits);
  return evaluator.map(sum.count, to, [&](i64 k) {
    return product[k] - offset * cells.u[k] + (constant[k] << place_bits);
  });
}

// Coefficients of about the widths that a series' table will have.
Piecewise outline(const PiecewiseTask& task, const PiecewiseShape& shape) {
  Piecewise f{shape, {}, {}, std::vector<int>(shape.degree, 0), true};
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
  return evaluated_bits([&](functions::Evaluator& evaluator, const functions::RingShares& x) {
    piecewise(evaluator, f, x);
  });
}

// Cells of the greatest length that keeps the error of `degree` below 2^-precision.
std::optional<PiecewiseShape> shape_of_degree(const PiecewiseTask& task, int degree) {
  PiecewiseShape shape{task.selectors + task.bits, 0, degree, task.scale, task.ring_bits};
  if (degree > 0 && task.bounded) {
    // 2 degree of them, of which each adds half a unit of the coefficients.
    const int more = std::bit_width(static_cast<unsigned>(degree - 1));
    shape.scale += more;
    shape.ring_bits += more;
  }
  if (degree > 0) {
    const int sixteenths = series_error(task.series, degree) + 16 * task.precision;
    const int cell = static_cast<int>(ceil_div(std::max(sixteenths, 0), 16 * (degree + 1)));
    const int widest = std::min(task.bits - 1, 64 - shape.ring_bits);
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
  Piecewise f{shape, {}, {}, {}, false};
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
  Piecewise f{shape, std::move(coefficients), {}, {}, false};
  for (const Words& words : f.coefficients) f.formats.push_back(format_of(words));
  f.partial_bits = partial_widths(f);
  expect(fits(f), "piecewise: the formats need numbers of more than 64 bits");
  return f;
}

namespace {

// From the first step's sum on.
functions::RingShares sum_of(functions::Evaluator& evaluator, const Piecewise& f, Cells cells) {
  functions::RingShares sum = std::move(cells.sum);
  for (int i = highest_power(f) - 1; i > 0; --i) sum = horner_step(evaluator, f, i, cells, sum);
  return sum;
}

functions::RingShares constant_value(functions::Evaluator& evaluator, const Piecewise& f,
                                     const functions::RingShares& x) {
  const std::vector<int> widths = widths_of(f);
  std::vector<functions::RingShares> found(widths.size(), evaluator.ring(x.count));
  evaluator.call(
      [&](ot::Party& party) {
        const std::vector<Words> tables = tables_of(f);
        const std::vector<std::span<const u64>> entries(tables.begin(), tables.end());
        std::vector<std::span<u64>> out;
        for (functions::RingShares& words : found) out.emplace_back(words.values);
        twopc::lookup_tables_xor(party, f.shape.index_bits, widths, entries, x, out);
      },
      [&](ot::CostMeter& meter) {
        twopc::cost_lookup_tables_xor(meter, x.count, f.shape.index_bits, widths);
      });
  return evaluator.word_to_ring(coefficients_of(evaluator, f, found)[0], f.formats[0],
                                f.shape.ring_bits);
}

}  // namespace

LineLookup line_of(const Piecewise& f) {
  const int d = highest_power(f);
  return {f.shape.index_bits,
          f.shape.place_bits,
          place_ring(f),
          widths_of(f),
          first_step(f),
          place_of(f, d - 1),
          place_of(f, d),
          false,
          0,
          f.apart};
}

functions::RingShares piecewise(functions::Evaluator& evaluator, const Piecewise& f,
                                const functions::RingShares& x, twopc::RandomOneHots* vectors) {
  if (f.shape.degree == 0) return constant_value(evaluator, f, x);
  LineFound found = line_lookup(evaluator, line_of(f), [&] { return tables_of(f); }, x, vectors);
  return sum_of(
      evaluator, f,
      {coefficients_of(evaluator, f, found.words), std::move(found.low), std::move(found.value)});
}

FoldedPiecewise folded_piecewise(functions::Evaluator& evaluator, const Piecewise& f, int bits,
                                 const functions::RingShares& x) {
  LineLookup lookup = line_of(f);
  lookup.folded_bits = bits;
  LineFound found = line_lookup(evaluator, lookup, [&] { return tables_of(f); }, x);
  return {sum_of(evaluator, f,
                 {coefficients_of(evaluator, f, found.words), std::move(found.low),
                  std::move(found.value)}),
          std::move(found.high), std::move(found.positive), std::move(found.nonnegative)};
}

u64 clear_piecewise(const Piecewise& f, u64 cell, u64 u) { return value_at(f, cell, u); }

void clear_piecewise(const Piecewise& f, std::span<const u64> x, std::span<u64> out) {
  const u64 mask = low_mask(f.shape.index_bits + f.shape.place_bits);
  for (size_t k = 0; k < x.size(); ++k)
    out[k] = value_at(f, (x[k] & mask) >> f.shape.place_bits, x[k] & low_mask(f.shape.place_bits));
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

}  // namespace privml::fixed
