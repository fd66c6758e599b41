// SPDX-License-Identifier: Apache-2.0
#include "functions/float/function_operations.h"

#include "twopc/lookup/lookup.h"

namespace privml::floating {

std::vector<functions::RingShares> lookup_words(functions::Evaluator& evaluator,
                                                std::span<const WordTable> tables,
                                                const functions::RingShares& index,
                                                int index_bits) {
  const functions::RingShares low =
      evaluator.map(index.count, index_bits, [&](i64 i) { return index[i]; });
  std::vector<functions::RingShares> out;
  std::vector<twopc::TableShape> shapes;
  for (const WordTable& table : tables) {
    out.push_back(evaluator.ring(index.count));
    shapes.push_back({index_bits, table.width});
  }
  evaluator.call(
      [&](ot::Party& party) {
        std::vector<twopc::TableLookup> lookups;
        for (std::size_t k = 0; k < tables.size(); ++k)
          lookups.push_back({tables[k].words, low, index_bits, tables[k].width, out[k].values});
        twopc::lookups_xor(party, lookups);
      },
      [&](ot::CostMeter& meter) { twopc::cost_lookups_xor(meter, index.count, shapes); });
  return out;
}

functions::RingShares multiply_and_cut(functions::Evaluator& evaluator,
                                       const functions::RingShares& x, twopc::FactorFormat x_format,
                                       const functions::RingShares& y, twopc::FactorFormat y_format,
                                       int ell, int shift) {
  return evaluator.truncate_reduce(evaluator.multiply(x, x_format, y, y_format, ell + shift),
                                   ell + shift, shift);
}

functions::BitShares bit_at(const functions::Evaluator& evaluator,
                            const functions::RingShares& words, int place) {
  return evaluator.map_bits(words.count,
                            [&](i64 i) { return static_cast<u8>((words[i] >> place) & 1); });
}

functions::RingShares field_at(const functions::Evaluator& evaluator,
                               const functions::RingShares& words, int place, int bits) {
  return evaluator.map(words.count, bits, [&](i64 i) { return words[i] >> place; });
}

functions::BitShares without(functions::Evaluator& evaluator, const functions::BitShares& a,
                             const functions::BitShares& b) {
  return evaluator.and_bits(a, evaluator.negated(b));
}

}  // namespace privml::floating
