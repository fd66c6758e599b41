// SPDX-License-Identifier: Apache-2.0
#include "twopc/compare/maximum.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "twopc/compare/best_of_four.h"
#include "twopc/compare/sign_selection.h"
#include "twopc/session/chunk.h"

namespace privml::twopc {
namespace {

constexpr i64 kMaxFactors = 8;  // of one plane product

enum class Want { value, one_hot, index };

// A tournament over n windows at once. Candidate g stands for positions [first[g], first[g + 1]) of
// its window; neighbours meet, an odd one waits. Numbers are state[(g * n + i) * length + l]: the
// value and, where wanted, the index; hot[position * n + i] marks the best of its candidate.
struct Tournament {
  i64 n;
  i64 length;
  int bits;
  Want want;
  std::vector<i64> first;
  std::vector<u64> state;
  std::vector<u8> hot;
};

std::vector<i64> initial_candidates(i64 window) {
  std::vector<i64> first(window + 1);
  for (i64 g = 0; g <= window; ++g) first[g] = g;
  return first;
}

std::vector<i64> next_candidates(const std::vector<i64>& first) {
  std::vector<i64> next;
  for (std::size_t g = 0; g + 1 < first.size(); g += 2) next.push_back(first[g]);
  next.push_back(first.back());
  return next;
}

i64 matches(const std::vector<i64>& first) { return (std::ssize(first) - 1) / 2; }

// Marks are multiplied by the outcome of their candidate's match; the mark of a single position is
// the outcome itself. Calls product(match, first position, count) with at most kMaxFactors
// positions.
template <class Product>
void for_each_product(const std::vector<i64>& first, Product&& product) {
  for (i64 match = 0; match < matches(first); ++match) {
    for (i64 g = 2 * match; g <= 2 * match + 1; ++g) {
      const i64 begin = first[g], end = first[g + 1];
      if (end - begin == 1) continue;
      for (i64 at = begin; at < end; at += kMaxFactors) {
        product(match, at, std::min(kMaxFactors, end - at));
      }
    }
  }
}

std::vector<PlaneProduct> mark_products(Tournament& t, const u8* outcomes) {
  std::vector<PlaneProduct> products;
  for_each_product(t.first, [&](i64 match, i64 at, i64 count) {
    PlaneProduct product{outcomes + match * t.n, {}};
    const bool loses =
        at >= t.first[2 * match + 1];  // the second one keeps 1 ^ outcome of its marks
    for (i64 position = at; position < at + count; ++position) {
      u8* const plane = t.hot.data() + position * t.n;
      product.factors.push_back({plane, plane, loses});
    }
    products.push_back(std::move(product));
  });
  return products;
}

void mark_single_positions(Tournament& t, int rank, const u8* outcomes) {
  for (i64 match = 0; match < matches(t.first); ++match) {
    for (i64 g = 2 * match; g <= 2 * match + 1; ++g) {
      if (t.first[g + 1] - t.first[g] > 1) continue;
      const u8 flip = rank == 0 && g % 2 == 1 ? 1 : 0;
      u8* const plane = t.hot.data() + t.first[g] * t.n;
      for (i64 i = 0; i < t.n; ++i) plane[i] = outcomes[match * t.n + i] ^ flip;
    }
  }
}

// One round: second + [first >= second] (first - second).
void play_round(ot::Party& party, Tournament& t) {
  const i64 met = matches(t.first), size = t.n * t.length;
  std::vector<u64> difference(met * size), sign(met * t.n);
  std::vector<u8> outcomes(met * t.n);
  for (i64 match = 0; match < met; ++match) {
    const u64* const a = t.state.data() + 2 * match * size;
    u64* const out = difference.data() + match * size;
    for (i64 j = 0; j < size; ++j) out[j] = a[j] - a[size + j];
    for (i64 i = 0; i < t.n; ++i) sign[match * t.n + i] = out[i * t.length];
  }
  std::vector<PlaneProduct> products;
  if (t.want == Want::one_hot) products = mark_products(t, outcomes.data());
  select_by_sign(
      party, {sign, difference, t.length, t.bits, difference, outcomes, std::move(products), t.n});
  if (t.want == Want::one_hot) mark_single_positions(t, party.rank, outcomes.data());
  for (i64 match = 0; match < met; ++match) {
    const u64* const loser = t.state.data() + (2 * match + 1) * size;
    for (i64 j = 0; j < size; ++j) {
      t.state[match * size + j] = loser[j] + difference[match * size + j];
    }
  }
  const i64 candidates = std::ssize(t.first) - 1;
  if (candidates % 2 == 1) {
    std::copy_n(t.state.begin() + (candidates - 1) * size, size, t.state.begin() + met * size);
  }
  t.first = next_candidates(t.first);
}

Tournament play(ot::Party& party, std::span<const u64> x, i64 window, int bits, Want want) {
  const i64 n = std::ssize(x) / window;
  const i64 length = want == Want::index ? 2 : 1;
  Tournament t{n, length, bits, want, initial_candidates(window), {}, {}};
  t.state.resize(window * n * length);
  const u64 mine = party.rank == 0 ? 1 : 0;
  for (i64 g = 0; g < window; ++g) {
    for (i64 i = 0; i < n; ++i) {
      u64* const state = t.state.data() + (g * n + i) * length;
      state[0] = x[i * window + g];
      if (want == Want::index) state[1] = static_cast<u64>(g) * mine;
    }
  }
  if (want == Want::one_hot) t.hot.assign(window * n, static_cast<u8>(mine));
  const CandidateShape all{n, window, length, bits};
  if (want != Want::one_hot && prefers_best_of_four(party, all)) {
    for (i64 left = window; left > 1; left = groups_of_four(left))
      best_of_four(party, {n, left, length, bits}, t.state);
    return t;
  }
  while (t.first.size() > 2) play_round(party, t);
  return t;
}

void cost_play(ot::CostMeter& meter, i64 n, i64 window, int bits, Want want) {
  const i64 length = want == Want::index ? 2 : 1;
  const CandidateShape all{n, window, length, bits};
  if (want != Want::one_hot && prefers_best_of_four(meter, all)) {
    for (i64 left = window; left > 1; left = groups_of_four(left))
      cost_best_of_four(meter, {n, left, length, bits});
    return;
  }
  for (auto first = initial_candidates(window); first.size() > 2; first = next_candidates(first)) {
    std::vector<int> widths;
    if (want == Want::one_hot) {
      for_each_product(first,
                       [&](i64, i64, i64 count) { widths.push_back(static_cast<int>(count)); });
    }
    cost_select_by_sign(meter, matches(first) * n, length, bits, widths, n);
  }
}

i64 windows_per_chunk(i64 window) { return std::max<i64>(1, kChunk / window); }

void check(i64 window, int bits) {
  expect(bits >= 2 && bits <= 64, "maximum: bits must be in 2..64");
  expect(window >= 1, "maximum: a window holds at least one value");
}

void check(std::span<const u64> x, i64 window, int bits, std::size_t n) {
  check(window, bits);
  expect(x.size() == n * static_cast<std::size_t>(window),
         "maximum: x must hold `window` values for each output");
}

// Calls done(first window, tournament) for each chunk of windows.
template <class Done>
void play_in_chunks(ot::Party& party, std::span<const u64> x, i64 window, int bits, Want want,
                    Done&& done) {
  in_chunks(
      party, std::ssize(x) / window,
      [&](ot::CostMeter& meter, i64 n) { cost_play(meter, n, window, bits, want); },
      [&](i64 begin, i64 n) {
        done(begin, play(party, x.subspan(begin * window, n * window), window, bits, want));
      },
      windows_per_chunk(window));
}

void cost_play_in_chunks(ot::CostMeter& meter, i64 n, i64 window, int bits, Want want) {
  check(window, bits);
  cost_in_chunks(
      meter, n, [&](ot::CostMeter& m, i64 count) { cost_play(m, count, window, bits, want); },
      windows_per_chunk(window));
}

}  // namespace

void maximum(ot::Party& party, std::span<const u64> a, std::span<const u64> b, int bits,
             std::span<u64> out) {
  expect(a.size() == b.size() && a.size() == out.size(), "maximum: sizes must agree");
  expect(bits >= 2 && bits <= 64, "maximum: bits must be in 2..64");
  in_chunks(
      party, std::ssize(a),
      [&](ot::CostMeter& meter, i64 n) { cost_select_by_sign(meter, n, 1, bits, {}, 0); },
      [&](i64 begin, i64 n) {
        std::vector<u64> difference(n);
        std::vector<u8> outcomes(n);
        for (i64 i = 0; i < n; ++i) difference[i] = a[begin + i] - b[begin + i];
        select_by_sign(party, {difference, difference, 1, bits, difference, outcomes, {}, 0});
        for (i64 i = 0; i < n; ++i) {
          out[begin + i] = (b[begin + i] + difference[i]) & low_mask(bits);
        }
      });
}

void cost_maximum(ot::CostMeter& meter, i64 n, int bits) {
  cost_in_chunks(meter, n, [&](ot::CostMeter& m, i64 count) {
    cost_select_by_sign(m, count, 1, bits, {}, 0);
  });
}

void maximum_windows(ot::Party& party, std::span<const u64> x, i64 window, int bits,
                     std::span<u64> out) {
  check(x, window, bits, out.size());
  play_in_chunks(party, x, window, bits, Want::value, [&](i64 begin, const Tournament& t) {
    for (i64 i = 0; i < t.n; ++i) out[begin + i] = t.state[i] & low_mask(bits);
  });
}

void cost_maximum_windows(ot::CostMeter& meter, i64 n, i64 window, int bits) {
  cost_play_in_chunks(meter, n, window, bits, Want::value);
}

void maximum_windows_one_hot(ot::Party& party, std::span<const u64> x, i64 window, int bits,
                             std::span<u64> out, std::span<u8> one_hot) {
  check(x, window, bits, out.size());
  expect(one_hot.size() == x.size(), "maximum: one_hot must be as long as x");
  play_in_chunks(party, x, window, bits, Want::one_hot, [&](i64 begin, const Tournament& t) {
    for (i64 i = 0; i < t.n; ++i) {
      out[begin + i] = t.state[i] & low_mask(bits);
      for (i64 j = 0; j < window; ++j) one_hot[(begin + i) * window + j] = t.hot[j * t.n + i];
    }
  });
}

void cost_maximum_windows_one_hot(ot::CostMeter& meter, i64 n, i64 window, int bits) {
  cost_play_in_chunks(meter, n, window, bits, Want::one_hot);
}

void argmax(ot::Party& party, std::span<const u64> x, i64 columns, int bits, std::span<u64> index) {
  check(x, columns, bits, index.size());
  expect(bits == 64 || columns <= i64{1} << std::min(bits, 62),
         "argmax: bits must hold the largest column");
  play_in_chunks(party, x, columns, bits, Want::index, [&](i64 begin, const Tournament& t) {
    for (i64 i = 0; i < t.n; ++i) index[begin + i] = t.state[2 * i + 1] & low_mask(bits);
  });
}

void cost_argmax(ot::CostMeter& meter, i64 n, i64 columns, int bits) {
  cost_play_in_chunks(meter, n, columns, bits, Want::index);
}

}  // namespace privml::twopc
