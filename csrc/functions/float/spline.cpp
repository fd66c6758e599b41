// SPDX-License-Identifier: Apache-2.0
#include "functions/float/spline.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace privml::floating {
namespace {

// Formats of the coefficients by power, and the widths of the partial sums: |sum i| is below
// 2^(partial[i] - 2).
struct Widths {
  std::vector<twopc::WordFormat> coefficients;
  std::vector<int> partial;
};

i64 cells(const Spline& f) { return i64{1} << f.index_bits; }
i64 coefficient(const Spline& f, i64 cell, int power) {
  return f.table[cell * (f.degree + 1) + power];
}

Widths widths(const Spline& f) {
  Widths out{{}, std::vector<int>(f.degree + 1)};
  for (int i = 0; i <= f.degree; ++i) {
    i64 most = 0, least = 0, largest_sum = 0;
    for (i64 cell = 0; cell < cells(f); ++cell) {
      most = std::max(most, coefficient(f, cell, i));
      least = std::min(least, coefficient(f, cell, i));
      i64 sum = f.degree - i;  // of the roundings
      for (int j = i; j <= f.degree; ++j) sum += std::llabs(coefficient(f, cell, j));
      largest_sum = std::max(largest_sum, sum);
    }
    const u64 size = static_cast<u64>(std::max(most, -least - 1));
    const int magnitude = static_cast<int>(std::bit_width(size));
    out.coefficients.push_back({magnitude + (least < 0 ? 1 : 0), least < 0});
    out.partial[i] = std::bit_width(static_cast<u64>(largest_sum)) + 2;
  }
  out.partial[0] = kSplineBits;
  return out;
}

// The coefficients of every element's cell, as XOR-shared words by power.
std::vector<functions::RingShares> coefficients(functions::Evaluator& evaluator, const Spline& f,
                                                const Widths& w,
                                                const functions::RingShares& cell) {
  struct Field {
    std::size_t group;
    int shift;
  };
  std::vector<Field> fields;
  std::vector<std::vector<u64>> words;
  std::vector<int> used;
  for (int i = 0; i <= f.degree; ++i) {
    const int bits = w.coefficients[i].bits;
    if (used.empty() || used.back() + bits > 64) {
      words.emplace_back(cells(f), 0);
      used.push_back(0);
    }
    fields.push_back({words.size() - 1, used.back()});
    for (i64 c = 0; c < cells(f); ++c)
      words.back()[c] |= (static_cast<u64>(coefficient(f, c, i)) & low_mask(bits)) << used.back();
    used.back() += bits;
  }
  std::vector<WordTable> tables;
  for (std::size_t g = 0; g < words.size(); ++g) tables.push_back({words[g], used[g]});
  const std::vector<functions::RingShares> found =
      lookup_words(evaluator, tables, cell, f.index_bits);
  std::vector<functions::RingShares> out;
  for (int i = 0; i <= f.degree; ++i)
    out.push_back(
        field_at(evaluator, found[fields[i].group], fields[i].shift, w.coefficients[i].bits));
  return out;
}

}  // namespace

int spline_place_ring(const Spline& f) {
  const Widths w = widths(f);
  return f.place_bits + *std::max_element(w.partial.begin(), w.partial.end() - 1);
}

functions::RingShares spline_at(functions::Evaluator& evaluator, const Spline& f,
                                const functions::RingShares& cell,
                                const functions::RingShares& place) {
  const Widths w = widths(f);
  const std::vector<functions::RingShares> c = coefficients(evaluator, f, w, cell);
  const int d = f.degree, place_bits = f.place_bits;
  const twopc::LinearShape first{w.coefficients[d - 1], place_bits, w.coefficients[d],
                                 w.partial[d - 1] + place_bits};
  functions::RingShares sum = evaluator.linear_words(first, c[d - 1], c[d], place);
  for (int i = d - 1; i > 0; --i) {
    const int bits = w.partial[i], ring = w.partial[i - 1] + place_bits;
    const u64 offset = u64{1} << (bits - 2), own = evaluator.constant(offset);
    const functions::RingShares whole =
        evaluator.truncate_reduce(sum, bits + place_bits, place_bits);
    const functions::RingShares partial =
        evaluator.map(evaluator.n, bits, [&](i64 k) { return whole[k] + own; });
    const functions::RingShares product =
        evaluator.multiply(partial, {bits, false, true}, place, {ring, false, false}, ring);
    const functions::RingShares constant =
        evaluator.word_to_ring(c[i - 1], w.coefficients[i - 1], ring - place_bits);
    sum = evaluator.map(evaluator.n, ring, [&](i64 k) {
      return product[k] - offset * place[k] + (constant[k] << place_bits);
    });
  }
  return evaluator.truncate_reduce(sum, kSplineBits + place_bits, place_bits);
}

functions::RingShares spline(functions::Evaluator& evaluator, const Spline& f,
                             const functions::RingShares& x) {
  const functions::Evaluator::Split parts =
      evaluator.split_number(x, f.index_bits + f.place_bits, f.place_bits, spline_place_ring(f));
  return spline_at(evaluator, f, parts.high, parts.low);
}

}  // namespace privml::floating
