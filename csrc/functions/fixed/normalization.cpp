// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/normalization.h"

#include <bit>

#include "base/error.h"

namespace privml::fixed {

Normalized normalize(functions::Evaluator& evaluator, const functions::RingShares& x, int bits) {
  const int places = bits - 1;
  std::vector<u64> table(places);
  for (int k = 0; k < places; ++k) table[k] = u64{1} << (places - 1 - k);
  functions::BitShares one_hot = evaluator.most_significant_nonzero_bit(x, places);
  const functions::RingShares power = evaluator.one_hot_select(one_hot, table);
  return {std::move(one_hot), evaluator.multiply_word(power, places, x, places)};
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
