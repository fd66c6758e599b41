// SPDX-License-Identifier: Apache-2.0
#include "secfloat/function_steps.h"

#include "twopc/lookup.h"

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
