// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/line_lookup.h"

#include "base/error.h"
#include "twopc/product/prepared_line.h"

namespace privml::fixed {
namespace {

using Words = std::vector<u64>;

// Bits of factors whose products are prepared at once: their memory.
constexpr i64 kMostBits = i64{1} << 19;

template <class Planner>
bool shares_flight(const Planner& planner, const LineLookup& lookup, i64 n) {
  const bool opens = lookup.folded_bits > 0
                         ? twopc::looks_up_by_one_hots(lookup.folded(), planner.correlation_bits)
                         : twopc::looks_up_by_one_hots(lookup.split(), planner.correlation_bits);
  return opens && !lookup.apart && n >= 2 &&
         n <= twopc::one_hot_chunk(lookup.index_bits) * planner.chunk_factor &&
         n * lookup.line.factor.bits <= kMostBits * planner.chunk_factor;
}

void cost_lookup(ot::CostMeter& meter, const LineLookup& lookup, i64 n, bool has_vectors,
                 twopc::Flight opening) {
  if (lookup.folded_bits > 0)
    return twopc::cost_folded_lookup_beside(meter, n, lookup.folded(), opening);
  twopc::cost_split_lookup_beside(meter, n, lookup.split(), has_vectors, opening);
}

template <class Planner>
std::array<i64, 2> correlations(const Planner& planner, const LineLookup& lookup, i64 n,
                                bool has_vectors) {
  return ot::count_correlations(planner, [&](ot::CostMeter& meter) {
    twopc::cost_draw_line(meter, n, lookup.line);
    cost_lookup(meter, lookup, n, has_vectors, {});
  });
}

Words part_of(std::span<const std::span<u64>> found, PlacedWord word) {
  Words out(found[word.table].begin(), found[word.table].end());
  for (u64& entry : out) entry >>= word.offset;
  return out;
}

Words number_of(const LineLookup& lookup, std::span<const u64> low) {
  Words u(low.begin(), low.end());
  if (lookup.negative)
    for (u64& word : u) word = u64{0} - word;
  return u;
}

using Tables = std::span<const std::span<const u64>>;
using Found = std::span<const std::span<u64>>;

twopc::FoldedNumber folded_number(LineFound& out, Found found) {
  return {found, out.high.values, out.low.values, out.positive.values, out.nonnegative.values};
}

void run_apart(ot::Party& party, const LineLookup& lookup, Tables tables, std::span<const u64> x,
               Found found, LineFound& out) {
  if (lookup.folded_bits > 0) {
    twopc::folded_lookup(party, lookup.folded(), tables, x, folded_number(out, found));
  } else {
    twopc::split_lookup(party, lookup.split(), tables, x, found, out.low.values);
  }
  twopc::linear_words(party, lookup.line, part_of(found, lookup.constant),
                      part_of(found, lookup.factor), number_of(lookup, out.low), out.value.values);
}

void run_together(ot::Party& party, const LineLookup& lookup, Tables tables, std::span<const u64> x,
                  Found found, LineFound& out, twopc::RandomOneHots* vectors) {
  const i64 n = std::ssize(x);
  const auto cots = correlations(party, lookup, n, vectors != nullptr);
  ot::reserve(party, cots[party.rank], cots[1 - party.rank]);
  twopc::PreparedLine line;
  Words number;
  twopc::draw_line(party, n, lookup.line, line);
  const twopc::BesideOpening beside{vectors,
                                    [&] {
                                      number = number_of(lookup, out.low);
                                      twopc::write_number(party, number, line);
                                    },
                                    [&] { twopc::read_number(party, line); }};
  if (lookup.folded_bits > 0) {
    twopc::folded_lookup_beside(party, lookup.folded(), tables, x, folded_number(out, found),
                                beside);
  } else {
    twopc::split_lookup_beside(party, lookup.split(), tables, x, found, out.low.values, beside);
  }
  const Words constant = part_of(found, lookup.constant);
  twopc::write_words(party, constant, part_of(found, lookup.factor), line);
  twopc::read_words(party, line);
  twopc::line_value(line, constant, number, out.value.values);
}

void cost(ot::CostMeter& meter, const LineLookup& lookup, i64 n, bool has_vectors) {
  if (!shares_flight(meter, lookup, n)) {
    if (lookup.folded_bits > 0) {
      twopc::cost_folded_lookup(meter, n, lookup.folded());
    } else {
      twopc::cost_split_lookup(meter, n, lookup.split());
    }
    return twopc::cost_linear_words(meter, n, lookup.line);
  }
  const auto cots = correlations(meter, lookup, n, has_vectors);
  meter.reserve(cots[0], cots[1]);
  twopc::cost_draw_line(meter, n, lookup.line);
  cost_lookup(meter, lookup, n, has_vectors, twopc::number_flight(n, lookup.line));
  twopc::cost_flight(meter, twopc::words_flight(n, lookup.line));
}

}  // namespace

LineFound line_lookup(functions::Evaluator& evaluator, const LineLookup& lookup,
                      const std::function<std::vector<std::vector<u64>>()>& tables,
                      const functions::RingShares& x, twopc::RandomOneHots* vectors) {
  const i64 n = x.count;
  LineFound out{std::vector<functions::RingShares>(lookup.widths.size(), evaluator.ring(n)),
                evaluator.ring(n),
                evaluator.ring(n),
                evaluator.ring(n),
                evaluator.ring(n),
                evaluator.bits(n)};
  evaluator.call(
      [&](ot::Party& party) {
        expect(vectors == nullptr || shares_flight(party, lookup, n),
               "line_lookup: vectors that are not taken");
        const std::vector<Words> entries = tables();
        const std::vector<std::span<const u64>> spans(entries.begin(), entries.end());
        std::vector<std::span<u64>> found;
        for (functions::RingShares& words : out.words) found.emplace_back(words.values);
        if (shares_flight(party, lookup, n)) {
          run_together(party, lookup, spans, x, found, out, vectors);
        } else {
          run_apart(party, lookup, spans, x, found, out);
        }
      },
      [&](ot::CostMeter& meter) { cost(meter, lookup, n, vectors != nullptr); });
  return out;
}

bool takes_vectors(functions::Evaluator& evaluator, const LineLookup& lookup, i64 n) {
  bool taken = false;
  evaluator.call([&](ot::Party& party) { taken = shares_flight(party, lookup, n); },
                 [&](ot::CostMeter& meter) { taken = shares_flight(meter, lookup, n); });
  return taken;
}

}  // namespace privml::fixed
