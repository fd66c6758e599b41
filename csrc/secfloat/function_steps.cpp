// SPDX-License-Identifier: Apache-2.0
#include "secfloat/function_steps.h"

#include "twopc/known_msb.h"
#include "twopc/lookup.h"
#include "twopc/split.h"

namespace privml {

std::vector<RingShares> lookup_words(Steps& steps, std::span<const WordTable> tables,
                                     const RingShares& index, int index_bits) {
  const RingShares low = steps.map(index.count, index_bits, [&](i64 i) { return index[i]; });
  std::vector<RingShares> out;
  std::vector<TableShape> shapes;
  for (const WordTable& table : tables) {
    out.push_back(steps.ring(index.count));
    shapes.push_back({index_bits, table.width});
  }
  steps.step(
      [&](Party& party) {
        std::vector<TableLookup> lookups;
        for (std::size_t k = 0; k < tables.size(); ++k)
          lookups.push_back({tables[k].words, low, index_bits, tables[k].width, out[k].values});
        lookups_xor(party, lookups);
      },
      [&](CostMeter& meter) { cost_lookups_xor(meter, index.count, shapes); });
  return out;
}

RingShares extend_leading_one(Steps& steps, const RingShares& x, int from, int to) {
  RingShares out = steps.ring(x.count);
  steps.step([&](Party& party) { extend_known_msb(party, x, from, 1, false, to, out.values); },
             [&](CostMeter& meter) { cost_extend_known_msb(meter, x.count, from, to); });
  return out;
}

SplitShares split_shares(Steps& steps, const RingShares& x, int bits, int shift, int low_bits) {
  SplitShares out{steps.ring(x.count), steps.ring(x.count)};
  steps.step(
      [&](Party& party) {
        split_number(party, x, bits, shift, low_bits, out.high.values, out.low.values);
      },
      [&](CostMeter& meter) { cost_split_number(meter, x.count, bits, shift, low_bits); });
  return out;
}

RingShares linear_shares(Steps& steps, const LinearShape& shape, const RingShares& constant,
                         const RingShares& factor, const RingShares& u) {
  RingShares out = steps.ring(u.count);
  steps.step([&](Party& party) { linear_words(party, shape, constant, factor, u, out.values); },
             [&](CostMeter& meter) { cost_linear_words(meter, u.count, shape); });
  return out;
}

RingShares multiply_by_word(Steps& steps, const RingShares& factor, int factor_bits,
                            const RingShares& u, int ell) {
  const WordFormat format{factor_bits, false};
  RingShares out = steps.ring(u.count);
  steps.step([&](Party& party) { multiply_word(party, factor, format, u, ell, out.values); },
             [&](CostMeter& meter) { cost_multiply_word(meter, u.count, format, ell); });
  return out;
}

RingShares multiply_and_cut(Steps& steps, const RingShares& x, FactorFormat x_format,
                            const RingShares& y, FactorFormat y_format, int ell, int shift) {
  return steps.truncate_reduce(steps.multiply(x, x_format, y, y_format, ell + shift), ell + shift,
                               shift);
}

BitShares bit_at(const Steps& steps, const RingShares& words, int place) {
  return steps.map_bits(words.count,
                        [&](i64 i) { return static_cast<u8>((words[i] >> place) & 1); });
}

RingShares field_at(const Steps& steps, const RingShares& words, int place, int bits) {
  return steps.map(words.count, bits, [&](i64 i) { return words[i] >> place; });
}

BitShares without(Steps& steps, const BitShares& a, const BitShares& b) {
  return steps.and_bits(a, steps.negated(b));
}

}  // namespace privml
