// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/normalization.h"

#include <bit>

#include "twopc/compare/nonzero_bit.h"
#include "twopc/product/word_product.h"

namespace privml {

Normalized normalize(Party& party, std::span<const u64> x, int bits) {
  const i64 n = std::ssize(x), places = bits - 1;
  Normalized out{std::vector<u8>(n * places), std::vector<u64>(n)};
  most_significant_nonzero_bit_or_none(party, x, bits - 1, out.one_hot);
  std::vector<u64> table(places), power(n);
  for (i64 k = 0; k < places; ++k) table[k] = u64{1} << (places - 1 - k);
  one_hot_select(out.one_hot, table, power);
  multiply_word(party, power, {bits - 1, false}, x, bits - 1, out.mantissa);
  return out;
}

void cost_normalize(CostMeter& meter, i64 count, int bits) {
  cost_most_significant_nonzero_bit(meter, count, bits - 1);
  cost_multiply_word(meter, count, {bits - 1, false}, bits - 1);
}

// table[k] ^ none at place k, on top of `none` for all.
std::vector<u64> select_by_place(const Party& party, const Normalized& x,
                                 const std::vector<u64>& table, u64 none) {
  std::vector<u64> differences(table), out(x.mantissa.size());
  for (u64& word : differences) word ^= none;
  one_hot_select(x.one_hot, differences, out);
  if (party.rank == 0)
    for (u64& word : out) word ^= none;
  return out;
}

ClearNormalized clear_normalize(u64 x, int bits) {
  const u64 value = x & low_mask(bits - 1);
  if (value == 0) return {-1, 0};
  const int place = std::bit_width(value) - 1;
  return {place, value << (bits - 2 - place)};
}

}  // namespace privml
