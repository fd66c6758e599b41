// SPDX-License-Identifier: Apache-2.0
#include "functions/float/function_operations.h"

#include "twopc/lookup/lookup.h"

namespace privml {

std::vector<RingShares> lookup_words(Evaluator& evaluator, std::span<const WordTable> tables,
                                     const RingShares& index, int index_bits) {
  const RingShares low = evaluator.map(index.count, index_bits, [&](i64 i) { return index[i]; });
  std::vector<RingShares> out;
  std::vector<TableShape> shapes;
  for (const WordTable& table : tables) {
    out.push_back(evaluator.ring(index.count));
    shapes.push_back({index_bits, table.width});
  }
  evaluator.call(
      [&](Party& party) {
        std::vector<TableLookup> lookups;
        for (std::size_t k = 0; k < tables.size(); ++k)
          lookups.push_back({tables[k].words, low, index_bits, tables[k].width, out[k].values});
        lookups_xor(party, lookups);
      },
      [&](CostMeter& meter) { cost_lookups_xor(meter, index.count, shapes); });
  return out;
}

RingShares multiply_and_cut(Evaluator& evaluator, const RingShares& x, FactorFormat x_format,
                            const RingShares& y, FactorFormat y_format, int ell, int shift) {
  return evaluator.truncate_reduce(evaluator.multiply(x, x_format, y, y_format, ell + shift),
                                   ell + shift, shift);
}

BitShares bit_at(const Evaluator& evaluator, const RingShares& words, int place) {
  return evaluator.map_bits(words.count,
                            [&](i64 i) { return static_cast<u8>((words[i] >> place) & 1); });
}

RingShares field_at(const Evaluator& evaluator, const RingShares& words, int place, int bits) {
  return evaluator.map(words.count, bits, [&](i64 i) { return words[i] >> place; });
}

BitShares without(Evaluator& evaluator, const BitShares& a, const BitShares& b) {
  return evaluator.and_bits(a, evaluator.negated(b));
}

}  // namespace privml
