// SPDX-License-Identifier: Apache-2.0
#include "functions/float/evaluator.h"

#include <algorithm>

#include "twopc/compare/comparison.h"
#include "twopc/compare/equality.h"
#include "twopc/compare/nonzero_bit.h"
#include "twopc/compare/wrap.h"
#include "twopc/lookup/lookup.h"
#include "twopc/product/private_product.h"
#include "twopc/select/bit_products.h"
#include "twopc/select/boolean.h"
#include "twopc/select/random_selection.h"
#include "twopc/width/bounded.h"
#include "twopc/width/extension.h"
#include "twopc/width/known_msb.h"
#include "twopc/width/split.h"
#include "twopc/width/truncation.h"

namespace privml {

FloatShares Evaluator::load(FloatView a, FloatFormat f, i64 begin) const {
  FloatShares out{bits(n), bits(n), ring(n), ring(n)};
  local(n, [&](i64 i) {
    out.zero[i] = a.zero[begin + i] & 1;
    out.sign[i] = a.sign[begin + i] & 1;
    out.exponent[i] = a.exponent[begin + i] & low_mask(f.exponent_bits());
    out.mantissa[i] = a.mantissa[begin + i] & low_mask(f.mantissa_bits());
  });
  return out;
}

void Evaluator::store(const FloatShares& a, FloatSpan out, i64 begin) const {
  local(n, [&](i64 i) {
    out.zero[begin + i] = a.zero[i];
    out.sign[begin + i] = a.sign[i];
    out.exponent[begin + i] = a.exponent[i];
    out.mantissa[begin + i] = a.mantissa[i];
  });
}

BitShares Evaluator::and_bits(const BitShares& a, const BitShares& b) {
  BitShares out = bits(a.count);
  if (meter_ != nullptr) {
    cost_and_bits(*meter_, a.count);
  } else {
    privml::and_bits(*party_, a, b, out.values);
  }
  return out;
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

Carries Evaluator::carries(const RingShares& x, int bits, int split, bool equality) {
  const ComparisonShape shape{bits, split, equality};
  Carries out{this->bits(x.count), this->bits(x.count), this->bits(x.count)};
  if (meter_ != nullptr) {
    cost_comparison(*meter_, shape, x.count);
    return out;
  }
  Comparison state;
  begin_comparison(*party_, shape, x, carry_flip(party_->rank), state);
  finish_comparison(*party_, state);
  std::ranges::copy(greater_of(state), out.all.values.begin());
  if (split > 0) {
    std::ranges::copy(low_greater_of(state), out.low.values.begin());
    if (equality) std::ranges::copy(low_equal_of(state), out.low_ones.values.begin());
  } else if (equality) {
    std::ranges::copy(equal_of(state), out.low_ones.values.begin());
  }
  return out;
}

BitShares Evaluator::most_significant_bit(const RingShares& x, int bits) {
  BitShares out = this->bits(x.count);
  if (meter_ != nullptr) {
    cost_most_significant_bit(*meter_, x.count, bits);
  } else {
    privml::most_significant_bit(*party_, x, bits, out.values);
  }
  return out;
}

BitShares Evaluator::equal_zero(const RingShares& x, int bits) {
  BitShares out = this->bits(x.count);
  if (meter_ != nullptr) {
    cost_equal_zero(*meter_, x.count, bits);
  } else {
    privml::equal_zero(*party_, x, bits, out.values);
  }
  return out;
}

namespace {

void cost_select(CostMeter& meter, std::span<const Selection> selections,
                 std::span<const Conversion> conversions) {
  Flight flight;
  i64 opened = 0;
  for (const Selection& one : selections) {
    cost_draw_random_selection(meter, one.bits.count);
    flight = flight + random_selection_flight(one.bits.count, one.length, one.width);
    opened += one.bits.count;
  }
  for (const Conversion& one : conversions) {
    if (one.width == 1) continue;
    cost_draw_random_bits(meter, one.bits.count, one.width);
    flight = flight + random_bits_flight(one.bits.count, one.width);
    opened += one.bits.count;
  }
  cost_flight(meter, flight);
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
  std::vector<RandomSelection> random(selections.size());
  std::vector<RandomBits> random_bits(conversions.size());
  for (std::size_t k = 0; k < random.size(); ++k) {
    const Selection& one = selections[k];
    write_random_selection(*party_, one.values, one.length, one.width, random[k]);
  }
  for (std::size_t k = 0; k < random_bits.size(); ++k) {
    const Conversion& one = conversions[k];
    write_random_bits(*party_, one.bits.count, one.width, random_bits[k]);
  }
  for (RandomSelection& one : random) read_random_selection(*party_, one);
  for (RandomBits& one : random_bits) read_random_bits(*party_, one);
  std::vector<u8> differences;
  for (std::size_t k = 0; k < random.size(); ++k) {
    append_difference(selections[k].bits, random[k].bits, differences);
  }
  for (std::size_t k = 0; k < random_bits.size(); ++k) {
    if (random_bits[k].width == 1) continue;
    append_difference(conversions[k].bits, random_bits[k].bits, differences);
  }
  write_bits(*party_, differences);
  read_bits_xor(*party_, differences);
  std::span<const u8> rest = differences;
  const auto next = [&](i64 count) {
    const auto taken = rest.first(count);
    rest = rest.subspan(count);
    return taken;
  };
  for (std::size_t k = 0; k < random.size(); ++k) {
    const Selection& one = selections[k];
    select_values(random[k], one.values, next(one.bits.count), out.selections[k].values);
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

RingShares Evaluator::truncate_reduce(const RingShares& x, int bits, int shift) {
  RingShares out = ring(x.count);
  if (meter_ != nullptr) {
    cost_truncate_reduce(*meter_, x.count, bits, shift);
  } else {
    privml::truncate_reduce(*party_, x, bits, shift, out.values);
  }
  return out;
}

RingShares Evaluator::extend_nonnegative(const RingShares& x, int from, int to) {
  RingShares out = ring(x.count);
  if (meter_ != nullptr) {
    cost_extend_nonnegative(*meter_, x.count, from, to);
  } else {
    privml::extend_nonnegative(*party_, x, from, to, out.values);
  }
  return out;
}

RingShares Evaluator::extend_shared_msb(const RingShares& x, int from, const BitShares& msb,
                                        int to) {
  RingShares out = ring(x.count);
  if (meter_ != nullptr) {
    cost_extend_shared_msb(*meter_, x.count, from, to);
  } else {
    privml::extend_shared_msb(*party_, x, from, msb, false, to, out.values);
  }
  return out;
}

RingShares Evaluator::extend_known_msb(const RingShares& x, int from, u8 msb, int to) {
  RingShares out = ring(x.count);
  if (meter_ != nullptr) {
    cost_extend_known_msb(*meter_, x.count, from, to);
  } else {
    privml::extend_known_msb(*party_, x, from, msb, false, to, out.values);
  }
  return out;
}

RingShares Evaluator::extend_bounded(const RingShares& x, int bits, u64 bound, int to) {
  RingShares out = ring(x.count);
  if (meter_ != nullptr) {
    cost_extend_bounded(*meter_, x.count, bits, bound, to);
  } else {
    privml::extend_bounded(*party_, x, bits, bound, to, out.values);
  }
  return out;
}

RingShares Evaluator::multiply(const RingShares& x, FactorFormat x_format, const RingShares& y,
                               FactorFormat y_format, int ell, const BitShares* x_msb,
                               const BitShares* y_msb) {
  RingShares out = ring(x.count);
  if (meter_ != nullptr) {
    cost_multiply(*meter_, x.count, x_format, y_format, ell);
    return out;
  }
  FactorMsbs msbs;
  if (x_msb != nullptr) msbs.x = x_msb->values;
  if (y_msb != nullptr) msbs.y = y_msb->values;
  privml::multiply(*party_, x, x_format, y, y_format, ell, out.values, msbs);
  return out;
}

// The carry of the lowest bits is their product.
RingShares Evaluator::halve(const RingShares& x, int bits) {
  RingShares out = ring(x.count);
  if (meter_ != nullptr) {
    cost_draw_private_product(*meter_, x.count);
    cost_flight(*meter_, private_product_flight(x.count, bits - 1));
    return out;
  }
  const BitShares low = map_bits(x.count, [&](i64 i) { return x[i]; });
  PrivateProduct state;
  write_private_product(*party_, low, bits - 1, state);
  read_private_product(*party_, state, out.values);
  local(x.count, [&](i64 i) { out[i] = (out[i] + (x[i] >> 1)) & low_mask(bits - 1); });
  return out;
}

// x0^2 + x1^2 + 2 x0 x1.
RingShares Evaluator::square(const RingShares& x, int bits) {
  RingShares out = ring(x.count);
  const KnownFormat format{bits - 1, false};
  if (meter_ != nullptr) {
    cost_cross_term(*meter_, 0, x.count, format, format, bits - 1, ChoiceSide::left);
    return out;
  }
  const RingShares low = map(x.count, bits - 1, [&](i64 i) { return x[i]; });
  cross_term(*party_, 0, low, format, format, bits - 1, ChoiceSide::left, out.values);
  local(x.count, [&](i64 i) { out[i] = (2 * out[i] + x[i] * x[i]) & low_mask(bits); });
  return out;
}

Evaluator::Split Evaluator::split_number(const RingShares& x, int bits, int shift, int low_bits) {
  Split out{ring(x.count), ring(x.count)};
  if (meter_ != nullptr) {
    cost_split_number(*meter_, x.count, bits, shift, low_bits);
  } else {
    privml::split_number(*party_, x, bits, shift, low_bits, out.high.values, out.low.values);
  }
  return out;
}

RingShares Evaluator::multiply_word(const RingShares& factor, int factor_bits, const RingShares& u,
                                    int ell) {
  RingShares out = ring(u.count);
  if (meter_ != nullptr) {
    cost_multiply_word(*meter_, u.count, {factor_bits, false}, ell);
  } else {
    privml::multiply_word(*party_, factor, {factor_bits, false}, u, ell, out.values);
  }
  return out;
}

RingShares Evaluator::linear_words(const LinearShape& shape, const RingShares& constant,
                                   const RingShares& factor, const RingShares& u) {
  RingShares out = ring(u.count);
  if (meter_ != nullptr) {
    cost_linear_words(*meter_, u.count, shape);
  } else {
    privml::linear_words(*party_, shape, constant, factor, u, out.values);
  }
  return out;
}

RingShares Evaluator::word_to_ring(const RingShares& word, WordFormat format, int ell) {
  RingShares out = ring(word.count);
  if (meter_ != nullptr) {
    cost_word_to_ring(*meter_, word.count, format, ell);
  } else {
    privml::word_to_ring(*party_, word, format, ell, out.values);
  }
  return out;
}

RingShares Evaluator::lookup_xor(std::span<const u64> table, const RingShares& index,
                                 int index_bits, int width) {
  RingShares out = ring(index.count);
  if (meter_ != nullptr) {
    cost_lookup_xor(*meter_, index.count, index_bits, width);
  } else {
    privml::lookup_xor(*party_, table, index, index_bits, width, out.values);
  }
  return out;
}

BitShares Evaluator::most_significant_nonzero_bit(const RingShares& x, int bits) {
  BitShares out = this->bits(x.count * bits);
  if (meter_ != nullptr) {
    cost_most_significant_nonzero_bit(*meter_, x.count, bits);
  } else {
    most_significant_nonzero_bit_or_none(*party_, x, bits, out.values);
  }
  return out;
}

RingShares Evaluator::one_hot_select(const BitShares& one_hot, std::span<const u64> table) {
  RingShares out = ring(one_hot.count / std::ssize(table));
  if (party_ != nullptr) privml::one_hot_select(one_hot, table, out.values);
  return out;
}

}  // namespace privml
