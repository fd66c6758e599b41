// SPDX-License-Identifier: Apache-2.0
#include "fixmath/exponential_range.h"

#include <vector>

#include "fixmath/exponential_table.h"
#include "twopc/extension.h"
#include "twopc/most_significant_bit.h"
#include "twopc/multiplex.h"

namespace privml {

ExponentialRange exponential_range(FixedFormat in, FixedFormat out, int covered, u64 last) {
  const u64 end = covered < in.bits ? (u64{1} << covered) - last : 0;
  return {in.bits, end, out.scale + 2, out.bits};
}

int covered_bits(FixedFormat in, FixedFormat out, int least, int table_bits) {
  const auto vanishes = [&](int covered) {
    const u64 last = table_bits == 0 ? 0 : u64{1} << (covered - table_bits);
    return exponential_fraction((u64{1} << covered) - last, in.scale) >> (62 - out.scale) == 0;
  };
  int covered = least;
  while (covered < in.bits && !vanishes(covered)) ++covered;
  return std::min(covered, in.bits);
}

void within_range(Party& party, const ExponentialRange& range, std::span<const u64> a,
                  std::span<const u64> value, std::span<u64> out) {
  std::vector<u64> kept(value.begin(), value.end());
  if (range.end > 0) {
    std::vector<u64> below(a.begin(), a.end());
    std::vector<u8> keeps(a.size());
    if (party.rank == 0)
      for (u64& word : below) word -= range.end;
    most_significant_bit(party, below, range.bits, keeps);
    multiplex(party, keeps, value, range.value_bits, kept);
  }
  extend_nonnegative(party, kept, range.value_bits, range.out_bits, out);
}

void cost_within_range(CostMeter& meter, i64 n, const ExponentialRange& range) {
  if (range.end > 0) {
    cost_most_significant_bit(meter, n, range.bits);
    cost_multiplex(meter, n, range.value_bits);
  }
  cost_extend_nonnegative(meter, n, range.value_bits, range.out_bits);
}

}  // namespace privml
