// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/normalization.h"

#include <array>
#include <bit>
#include <utility>

#include "twopc/compare/nonzero_bit.h"
#include "twopc/width/conversion.h"

namespace privml::fixed {
namespace {

using Words = std::vector<u64>;

// x by its place: 2^(places - 1 - place) of it.
Words mantissa_powers(int places) {
  Words table(places);
  for (int k = 0; k < places; ++k) table[k] = u64{1} << (places - 1 - k);
  return table;
}

twopc::LinearShape product_of(int factor_bits, int ring) {
  return {{}, 0, {factor_bits, false}, ring};
}

struct Shape {
  i64 n;
  int places;
  twopc::LinearShape mantissa, power;
  int flag_ring;   // 0: no flag
  int index_bits;  // 0: no vectors

  bool has_power() const { return power.factor.bits > 0; }
  int steps() const { return index_bits > 0 ? twopc::one_hot_steps(index_bits) : 0; }
};

void cost_draws(ot::CostMeter& meter, const Shape& s) {
  twopc::cost_draw_line(meter, s.n, s.mantissa);
  if (s.has_power()) twopc::cost_draw_line(meter, s.n, s.power);
  if (s.index_bits > 0) twopc::cost_draw_one_hots(meter, s.n, s.index_bits);
  if (s.flag_ring > 0) twopc::cost_draw_random_bits(meter, s.n, s.flag_ring);
}

template <class Planner>
std::array<i64, 2> correlations(const Planner& planner, const Shape& s) {
  return ot::count_correlations(planner, [&](ot::CostMeter& meter) {
    cost_draws(meter, s);
    twopc::cost_most_significant_nonzero_bit(meter, s.n, s.places);
  });
}

void cost_together(ot::CostMeter& meter, const Shape& s) {
  const auto cots = correlations(meter, s);
  meter.reserve(cots[0], cots[1]);
  cost_draws(meter, s);
  int step = 0;
  const auto next = [&] {
    twopc::Flight flight;
    if (step == 0) flight = twopc::number_flight(s.n, s.mantissa);
    if (step == 0 && s.flag_ring > 0) flight = flight + twopc::random_bits_flight(s.n, s.flag_ring);
    if (step < s.steps()) flight = flight + twopc::one_hot_flight(s.n, s.index_bits, step);
    ++step;
    return flight;
  };
  twopc::cost_most_significant_nonzero_bit_or_none(meter, s.n, s.places, next);
  twopc::Flight opening = twopc::words_flight(s.n, s.mantissa) + next();
  if (s.has_power()) opening = opening + twopc::words_flight(s.n, s.power);
  const i64 flags = s.flag_ring > 1 ? packed_bytes(s.n, 1) : 0;
  twopc::cost_flight(meter, opening + twopc::Flight{flags, flags});
  while (step < s.steps()) twopc::cost_flight(meter, next());
}

Words selected(const ot::Party& party, std::span<const u8> one_hot, const PlaceTable& table,
               i64 n) {
  Words differences(table.words), out(n);
  for (u64& word : differences) word ^= table.none;
  twopc::one_hot_select(one_hot, differences, out);
  if (party.rank == 0)
    for (u64& word : out) word ^= table.none;
  return out;
}

void run_together(ot::Party& party, const Shape& s, const Continuation& continuation,
                  std::span<const u64> x, Continued& out) {
  const auto cots = correlations(party, s);
  ot::reserve(party, cots[party.rank], cots[1 - party.rank]);
  twopc::PreparedLine mantissa;
  twopc::RandomBits random;
  twopc::draw_line(party, s.n, s.mantissa, mantissa);
  if (s.has_power()) twopc::draw_line(party, s.n, s.power, out.line);
  if (s.index_bits > 0) twopc::draw_one_hots(party, s.n, s.index_bits, out.vectors);
  const auto advance = [&] {
    if (s.index_bits > 0) twopc::advance_one_hots(party, out.vectors);
  };
  bool is_first = true, is_second = true;
  const auto beside = [&] {
    if (std::exchange(is_first, false)) {
      twopc::write_number(party, x, mantissa);
      if (s.index_bits > 0) twopc::begin_one_hots(party, out.vectors);
      if (s.flag_ring > 0) twopc::read_random_bits(party, random);
      return;
    }
    if (std::exchange(is_second, false)) twopc::read_number(party, mantissa);
    advance();
  };
  // Correlations are drawn before the place's, whose halves are drawn in different flights.
  if (s.flag_ring > 0) twopc::write_random_bits(party, s.n, s.flag_ring, random);
  twopc::most_significant_nonzero_bit_or_none(party, x, s.places, out.number.one_hot.values,
                                              beside);
  const std::span<const u8> one_hot = out.number.one_hot;
  twopc::write_words(party, {}, selected(party, one_hot, {mantissa_powers(s.places), 0}, s.n),
                     mantissa);
  if (s.has_power())
    twopc::write_words(party, {}, selected(party, one_hot, continuation.power, s.n), out.line);
  std::vector<u8> flags(s.n), opened;
  const twopc::PendingConversion conversions[] = {{random, flags, out.flag.values}};
  if (s.flag_ring > 0) {
    const Words words = selected(party, one_hot, continuation.flag, s.n);
    for (i64 i = 0; i < s.n; ++i) flags[i] = words[i] & 1;
    twopc::write_conversions(party, conversions, opened);
  }
  advance();
  twopc::read_words(party, mantissa);
  if (s.has_power()) twopc::read_words(party, out.line);
  if (s.flag_ring > 0) twopc::read_conversions(party, conversions, opened);
  if (s.index_bits > 0)
    while (out.vectors.step < s.steps()) advance();
  twopc::line_value(mantissa, {}, x, out.number.mantissa.values);
}

void normalize_apart(functions::Evaluator& evaluator, const Shape& s,
                     const Continuation& continuation, const functions::RingShares& x,
                     Continued& out) {
  out.number.one_hot = evaluator.most_significant_nonzero_bit(x, s.places);
  const functions::RingShares power =
      evaluator.one_hot_select(out.number.one_hot, mantissa_powers(s.places));
  out.number.mantissa = evaluator.multiply_word(power, s.places, x, s.places);
  if (s.flag_ring == 0) return;
  const functions::RingShares words =
      select_by_place(evaluator, out.number, continuation.flag.words, continuation.flag.none);
  const functions::BitShares bits = evaluator.map_bits(x.count, [&](i64 i) { return words[i]; });
  out.flag = evaluator.result(
      x.count,
      [&](ot::Party& party, std::span<u64> ring) {
        twopc::bits_to_ring(party, bits, s.flag_ring, ring);
      },
      [&](ot::CostMeter& meter) { twopc::cost_bits_to_ring(meter, x.count, s.flag_ring); });
}

}  // namespace

Continued normalize(functions::Evaluator& evaluator, const functions::RingShares& x, int bits,
                    const Continuation& continuation) {
  const i64 n = x.count;
  const int places = bits - 1;
  const LineLookup* const lookup = continuation.lookup;
  Continued out{{evaluator.bits(n * places), evaluator.ring(n)},
                {},
                evaluator.ring(n),
                {},
                false,
                false,
                {},
                product_of(continuation.power_bits, continuation.ring)};
  bool together = false;
  evaluator.call(
      [&](ot::Party& p) {
        together = n >= 2 && n <= twopc::nonzero_bit_chunk(places, p.chunk_factor);
      },
      [&](ot::CostMeter& m) {
        together = n >= 2 && n <= twopc::nonzero_bit_chunk(places, m.chunk_factor);
      });
  out.has_vectors = together && lookup != nullptr && takes_vectors(evaluator, *lookup, n);
  out.is_open = together && continuation.power_bits > 0;
  const Shape s{n,
                places,
                product_of(places, places),
                out.shape,
                continuation.flag.words.empty() ? 0 : continuation.flag_ring,
                out.has_vectors ? lookup->index_bits : 0};
  if (together) {
    evaluator.call([&](ot::Party& party) { run_together(party, s, continuation, x, out); },
                   [&](ot::CostMeter& meter) { cost_together(meter, s); });
  } else {
    normalize_apart(evaluator, s, continuation, x, out);
  }
  if (continuation.power_bits > 0)
    out.power =
        select_by_place(evaluator, out.number, continuation.power.words, continuation.power.none);
  return out;
}

Normalized normalize(functions::Evaluator& evaluator, const functions::RingShares& x, int bits) {
  return normalize(evaluator, x, bits, Continuation{}).number;
}

functions::RingShares multiply_by_power(functions::Evaluator& evaluator, Continued& number,
                                        const functions::RingShares& u) {
  if (!number.is_open)
    return evaluator.multiply_word(number.power, number.shape.factor.bits, u, number.shape.ell);
  return evaluator.result(
      u.count,
      [&](ot::Party& party, std::span<u64> out) {
        twopc::write_number(party, u, number.line);
        twopc::read_number(party, number.line);
        twopc::line_value(number.line, {}, u, out);
      },
      [&](ot::CostMeter& meter) {
        twopc::cost_flight(meter, twopc::number_flight(u.count, number.shape));
      });
}

// table[k] ^ none at place k, on top of `none` for all.
functions::RingShares select_by_place(functions::Evaluator& evaluator, const Normalized& x,
                                      const std::vector<u64>& table, u64 none) {
  std::vector<u64> differences(table);
  for (u64& word : differences) word ^= none;
  functions::RingShares out = evaluator.one_hot_select(x.one_hot, differences);
  const u64 flip = evaluator.constant(none);
  evaluator.local(out.count, [&](i64 i) { out[i] ^= flip; });
  return out;
}

ClearNormalized clear_normalize(u64 x, int bits) {
  const u64 value = x & low_mask(bits - 1);
  if (value == 0) return {-1, 0};
  const int place = std::bit_width(value) - 1;
  return {place, value << (bits - 2 - place)};
}

}  // namespace privml::fixed
