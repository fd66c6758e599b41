// SPDX-License-Identifier: Apache-2.0
#include "functions/evaluator/evaluator.h"

#include <algorithm>

#include "twopc/compare/comparison.h"
#include "twopc/compare/equality.h"
#include "twopc/compare/nonzero_bit.h"
#include "twopc/compare/relu.h"
#include "twopc/compare/wrap.h"
#include "twopc/lookup/lookup.h"
#include "twopc/select/bit_products.h"
#include "twopc/select/boolean.h"
#include "twopc/select/multiplex.h"
#include "twopc/select/random_selection.h"
#include "twopc/width/bounded.h"
#include "twopc/width/extension.h"
#include "twopc/width/known_msb.h"
#include "twopc/width/split.h"
#include "twopc/width/truncation.h"

namespace privml::functions {

RingShares Evaluator::load(std::span<const u64> words, i64 begin) const {
  RingShares out = ring(n);
  if (party_ != nullptr) std::copy_n(words.begin() + begin, n, out.values.begin());
  return out;
}

void Evaluator::store(const RingShares& words, int width, std::span<u64> out, i64 begin) const {
  local(n, [&](i64 i) { out[begin + i] = words[i] & low_mask(width); });
}

BitShares Evaluator::and_bits(const BitShares& a, const BitShares& b) {
  return written<u8>(
      a.count, [&](ot::Party& party, std::span<u8> out) { twopc::and_bits(party, a, b, out); },
      [&](ot::CostMeter& meter) { twopc::cost_and_bits(meter, a.count); });
}

BitShares Evaluator::or_bits(const BitShares& a, const BitShares& b) {
  BitShares out = and_bits(a, b);
  local(a.count, [&](i64 i) { out[i] ^= a[i] ^ b[i]; });
  return out;
}

BitShares Evaluator::negated(BitShares a) const {
  if (first())
    for (u8& bit : a.values) bit ^= 1;
  return a;
}

RingShares Evaluator::plus(RingShares x, u64 c) const {
  if (first())
    for (u64& word : x.values) word += c;
  return x;
}

RingShares Evaluator::negated(const RingShares& x, int width) const {
  return map(x.count, width, [&](i64 i) { return u64{0} - x[i]; });
}

Carries Evaluator::carries(const RingShares& x, int bits, int split, bool equality) {
  const twopc::ComparisonShape shape{bits, split, equality};
  Carries out{this->bits(x.count), this->bits(x.count), this->bits(x.count)};
  if (meter_ != nullptr) {
    twopc::cost_comparison(*meter_, shape, x.count);
    return out;
  }
  twopc::Comparison state;
  twopc::begin_comparison(*party_, shape, x, twopc::carry_flip(party_->rank), state);
  twopc::finish_comparison(*party_, state);
  std::ranges::copy(twopc::greater_of(state), out.all.values.begin());
  if (split > 0) {
    std::ranges::copy(twopc::low_greater_of(state), out.low.values.begin());
    if (equality) std::ranges::copy(twopc::low_equal_of(state), out.low_ones.values.begin());
  } else if (equality) {
    std::ranges::copy(twopc::equal_of(state), out.low_ones.values.begin());
  }
  return out;
}

BitShares Evaluator::most_significant_bit(const RingShares& x, int bits) {
  return written<u8>(
      x.count,
      [&](ot::Party& party, std::span<u8> out) {
        twopc::most_significant_bit(party, x, bits, out);
      },
      [&](ot::CostMeter& meter) { twopc::cost_most_significant_bit(meter, x.count, bits); });
}

BitShares Evaluator::equal_zero(const RingShares& x, int bits) {
  return written<u8>(
      x.count, [&](ot::Party& party, std::span<u8> out) { twopc::equal_zero(party, x, bits, out); },
      [&](ot::CostMeter& meter) { twopc::cost_equal_zero(meter, x.count, bits); });
}

namespace {

void cost_select(ot::CostMeter& meter, std::span<const Selection> selections,
                 std::span<const Conversion> conversions) {
  twopc::Flight flight;
  i64 opened = 0;
  for (const Selection& one : selections) {
    twopc::cost_draw_random_selection(meter, one.bits.count);
    flight = flight + twopc::random_selection_flight(one.bits.count, one.length, one.width);
    opened += one.bits.count;
  }
  for (const Conversion& one : conversions) {
    if (one.width == 1) continue;
    twopc::cost_draw_random_bits(meter, one.bits.count, one.width);
    flight = flight + twopc::random_bits_flight(one.bits.count, one.width);
    opened += one.bits.count;
  }
  twopc::cost_flight(meter, flight);
  meter.exchange(packed_bytes(opened, 1), packed_bytes(opened, 1));
}

void append_difference(std::span<const u8> bits, std::span<const u8> random,
                       std::vector<u8>& differences) {
  for (std::size_t i = 0; i < bits.size(); ++i) differences.push_back(bits[i] ^ random[i]);
}

}  // namespace

Selected Evaluator::select(std::span<const Selection> selections,
                           std::span<const Conversion> conversions) {
  Selected out;
  for (const Selection& one : selections) out.selections.push_back(ring(one.values.count));
  for (const Conversion& one : conversions) out.conversions.push_back(ring(one.bits.count));
  if (meter_ != nullptr) {
    cost_select(*meter_, selections, conversions);
    return out;
  }
  std::vector<twopc::RandomSelection> random(selections.size());
  std::vector<twopc::RandomBits> random_bits(conversions.size());
  for (std::size_t k = 0; k < random.size(); ++k) {
    const Selection& one = selections[k];
    twopc::write_random_selection(*party_, one.values, one.length, one.width, random[k]);
  }
  for (std::size_t k = 0; k < random_bits.size(); ++k) {
    const Conversion& one = conversions[k];
    twopc::write_random_bits(*party_, one.bits.count, one.width, random_bits[k]);
  }
  for (twopc::RandomSelection& one : random) twopc::read_random_selection(*party_, one);
  for (twopc::RandomBits& one : random_bits) twopc::read_random_bits(*party_, one);
  std::vector<u8> differences;
  for (std::size_t k = 0; k < random.size(); ++k) {
    append_difference(selections[k].bits, random[k].bits, differences);
  }
  for (std::size_t k = 0; k < random_bits.size(); ++k) {
    if (random_bits[k].width == 1) continue;
    append_difference(conversions[k].bits, random_bits[k].bits, differences);
  }
  twopc::write_bits(*party_, differences);
  twopc::read_bits_xor(*party_, differences);
  std::span<const u8> rest = differences;
  const auto next = [&](i64 count) {
    const auto taken = rest.first(count);
    rest = rest.subspan(count);
    return taken;
  };
  for (std::size_t k = 0; k < random.size(); ++k) {
    const Selection& one = selections[k];
    twopc::select_values(random[k], one.values, next(one.bits.count), out.selections[k].values);
  }
  for (std::size_t k = 0; k < random_bits.size(); ++k) {
    const Conversion& one = conversions[k];
    RingShares& converted = out.conversions[k];
    if (one.width == 1) {
      std::ranges::copy(one.bits.values, converted.values.begin());
      continue;
    }
    // bit = difference ^ c is c or 1 - c.
    const auto difference = next(one.bits.count);
    const u64 mask = low_mask(one.width), unit = constant(1);
    for (i64 i = 0; i < one.bits.count; ++i) {
      const u64 c = random_bits[k].ring[i];
      converted[i] = (difference[i] ? unit - c : c) & mask;
    }
  }
  return out;
}

RingShares Evaluator::select(const BitShares& bits, const RingShares& values, int width) {
  return std::move(select({{bits, values, values.count / bits.count, width}}, {}).selections[0]);
}

RingShares Evaluator::to_ring(const BitShares& bits, int width) {
  return std::move(select({}, {{bits, width}}).conversions[0]);
}

RingShares Evaluator::multiplex(const BitShares& bits, const RingShares& values, int width) {
  return written<u64>(
      values.count,
      [&](ot::Party& party, std::span<u64> out) {
        twopc::multiplex(party, bits, values, width, out);
      },
      [&](ot::CostMeter& meter) { twopc::cost_multiplex(meter, values.count, width); });
}

RingShares Evaluator::relu(const RingShares& x, int bits, BitShares* nonnegative) {
  BitShares signs = this->bits(x.count);
  RingShares out = written<u64>(
      x.count,
      [&](ot::Party& party, std::span<u64> out) { twopc::relu(party, x, bits, out, signs.values); },
      [&](ot::CostMeter& meter) { twopc::cost_relu(meter, x.count, bits); });
  if (nonnegative != nullptr) *nonnegative = std::move(signs);
  return out;
}

RingShares Evaluator::truncate_reduce(const RingShares& x, int bits, int shift) {
  return written<u64>(
      x.count,
      [&](ot::Party& party, std::span<u64> out) {
        twopc::truncate_reduce(party, x, bits, shift, out);
      },
      [&](ot::CostMeter& meter) { twopc::cost_truncate_reduce(meter, x.count, bits, shift); });
}

RingShares Evaluator::round_off(RingShares x, int bits, int shift) {
  return truncate_reduce(plus(std::move(x), half_of(shift)), bits, shift);
}

RingShares Evaluator::extend_signed(const RingShares& x, int from, int to) {
  return written<u64>(
      x.count,
      [&](ot::Party& party, std::span<u64> out) { twopc::sign_extend(party, x, from, to, out); },
      [&](ot::CostMeter& meter) { twopc::cost_extend(meter, x.count, from, to); });
}

RingShares Evaluator::extend_nonnegative(const RingShares& x, int from, int to) {
  return written<u64>(
      x.count,
      [&](ot::Party& party, std::span<u64> out) {
        twopc::extend_nonnegative(party, x, from, to, out);
      },
      [&](ot::CostMeter& meter) { twopc::cost_extend_nonnegative(meter, x.count, from, to); });
}

RingShares Evaluator::extend_shared_msb(const RingShares& x, int from, const BitShares& msb,
                                        int to) {
  return written<u64>(
      x.count,
      [&](ot::Party& party, std::span<u64> out) {
        twopc::extend_shared_msb(party, x, from, msb, false, to, out);
      },
      [&](ot::CostMeter& meter) { twopc::cost_extend_shared_msb(meter, x.count, from, to); });
}

RingShares Evaluator::extend_known_msb(const RingShares& x, int from, u8 msb, int to) {
  return written<u64>(
      x.count,
      [&](ot::Party& party, std::span<u64> out) {
        twopc::extend_known_msb(party, x, from, msb, false, to, out);
      },
      [&](ot::CostMeter& meter) { twopc::cost_extend_known_msb(meter, x.count, from, to); });
}

RingShares Evaluator::extend_bounded(const RingShares& x, int bits, u64 bound, int to) {
  return written<u64>(
      x.count,
      [&](ot::Party& party, std::span<u64> out) {
        twopc::extend_bounded(party, x, bits, bound, to, out);
      },
      [&](ot::CostMeter& meter) { twopc::cost_extend_bounded(meter, x.count, bits, bound, to); });
}

RingShares Evaluator::multiply(const RingShares& x, twopc::FactorFormat x_format,
                               const RingShares& y, twopc::FactorFormat y_format, int ell) {
  RingShares out = ring(x.count);
  if (meter_ != nullptr) {
    twopc::cost_multiply(*meter_, x.count, x_format, y_format, ell);
    return out;
  }
  twopc::multiply(*party_, x, x_format, y, y_format, ell, out.values);
  return out;
}

// x0^2 + x1^2 + 2 x0 x1.
RingShares Evaluator::square(const RingShares& x, int bits) {
  RingShares out = ring(x.count);
  const twopc::KnownFormat format{bits - 1, false};
  if (meter_ != nullptr) {
    twopc::cost_cross_term(*meter_, 0, x.count, format, format, bits - 1, twopc::ChoiceSide::left);
    return out;
  }
  const RingShares low = map(x.count, bits - 1, [&](i64 i) { return x[i]; });
  twopc::cross_term(*party_, 0, low, format, format, bits - 1, twopc::ChoiceSide::left, out.values);
  local(x.count, [&](i64 i) { out[i] = (2 * out[i] + x[i] * x[i]) & low_mask(bits); });
  return out;
}

Evaluator::Split Evaluator::split_number(const RingShares& x, int bits, int shift, int low_bits) {
  Split out{ring(x.count), ring(x.count)};
  if (meter_ != nullptr) {
    twopc::cost_split_number(*meter_, x.count, bits, shift, low_bits);
  } else {
    twopc::split_number(*party_, x, bits, shift, low_bits, out.high.values, out.low.values);
  }
  return out;
}

RingShares Evaluator::multiply_word(const RingShares& factor, int factor_bits, const RingShares& u,
                                    int ell) {
  return written<u64>(
      u.count,
      [&](ot::Party& party, std::span<u64> out) {
        twopc::multiply_word(party, factor, {factor_bits, false}, u, ell, out);
      },
      [&](ot::CostMeter& meter) {
        twopc::cost_multiply_word(meter, u.count, {factor_bits, false}, ell);
      });
}

RingShares Evaluator::linear_words(const twopc::LinearShape& shape, const RingShares& constant,
                                   const RingShares& factor, const RingShares& u) {
  return written<u64>(
      u.count,
      [&](ot::Party& party, std::span<u64> out) {
        twopc::linear_words(party, shape, constant, factor, u, out);
      },
      [&](ot::CostMeter& meter) { twopc::cost_linear_words(meter, u.count, shape); });
}

RingShares Evaluator::word_to_ring(const RingShares& word, twopc::WordFormat format, int ell) {
  return written<u64>(
      word.count,
      [&](ot::Party& party, std::span<u64> out) {
        twopc::word_to_ring(party, word, format, ell, out);
      },
      [&](ot::CostMeter& meter) { twopc::cost_word_to_ring(meter, word.count, format, ell); });
}

RingShares Evaluator::addition_formula(const twopc::AdditionFormula& formula, const RingShares& x) {
  return written<u64>(
      x.count,
      [&](ot::Party& party, std::span<u64> out) {
        twopc::addition_formula(party, formula, x, out);
      },
      [&](ot::CostMeter& meter) { twopc::cost_addition_formula(meter, x.count, formula); });
}

RingShares Evaluator::lookup_xor(std::span<const u64> table, const RingShares& index,
                                 int index_bits, int width) {
  return written<u64>(
      index.count,
      [&](ot::Party& party, std::span<u64> out) {
        twopc::lookup_xor(party, table, index, index_bits, width, out);
      },
      [&](ot::CostMeter& meter) { twopc::cost_lookup_xor(meter, index.count, index_bits, width); });
}

BitShares Evaluator::most_significant_nonzero_bit(const RingShares& x, int bits) {
  return written<u8>(
      x.count * bits,
      [&](ot::Party& party, std::span<u8> out) {
        twopc::most_significant_nonzero_bit_or_none(party, x, bits, out);
      },
      [&](ot::CostMeter& meter) {
        twopc::cost_most_significant_nonzero_bit(meter, x.count, bits);
      });
}

RingShares Evaluator::one_hot_select(const BitShares& one_hot, std::span<const u64> table) {
  RingShares out = ring(one_hot.count / std::ssize(table));
  if (party_ != nullptr) twopc::one_hot_select(one_hot, table, out.values);
  return out;
}

}  // namespace privml::functions
