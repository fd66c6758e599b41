// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/exponential_range.h"

#include <algorithm>
#include <vector>

#include "functions/fixed/exponential_table.h"
#include "twopc/compare/wrap.h"
#include "twopc/select/multiplex.h"
#include "twopc/width/extension.h"

namespace privml {

namespace {

bool vanishes(u64 a, FixedFormat in, FixedFormat out, int bits) {
  return exponential_fraction(a, in.scale) >> (64 - bits - out.scale) == 0;
}

// Whether sums of high parts tell arguments below `zero` from those of `end` on: for the first they
// are at most floor((zero - 1) / 2^dropped), for the others at least end / 2^dropped - 1.
bool tells(u64 zero, u64 end, int dropped) {
  return (end & low_mask(dropped)) == 0 && (zero - 1) >> dropped < (end >> dropped) - 1;
}

u64 first_zero(FixedFormat in, FixedFormat out, u64 end, int zero_bits) {
  u64 most = end, least = 1;  // by halving
  while (least < most) {
    const u64 middle = least + (most - least) / 2;
    if (vanishes(middle, in, out, zero_bits)) {
      most = middle;
    } else {
      least = middle + 1;
    }
  }
  return most;
}

}  // namespace

void expect_wide_formats(FixedFormat in, FixedFormat out, const std::string& function) {
  expect_format(in, 64, function + ", input format");
  if (in.scale > 30) throw InvalidArgument(function + ", input format: scale must lie in 0..30");
  expect_format(out, 32, function + ", output format");
}

int covered_bits(FixedFormat in, FixedFormat out, int least, int table_bits) {
  int covered = least;
  while (covered < in.bits) {
    const u64 last = table_bits == 0 ? 0 : u64{1} << (covered - table_bits);
    if (vanishes((u64{1} << covered) - last, in, out, 2)) break;
    ++covered;
  }
  return std::min(covered, in.bits);
}

ExponentialRange exponential_range(FixedFormat in, FixedFormat out, int covered, int zero_bits,
                                   u64 last) {
  ExponentialRange range{in.bits, 0, 0, out.scale + 2, out.bits};
  if (covered >= in.bits) return range;
  range.end = (u64{1} << covered) - last;
  const u64 zero = first_zero(in, out, range.end, zero_bits);
  for (int dropped = 1; dropped <= covered; ++dropped)
    if (tells(zero, range.end, dropped)) range.dropped = dropped;
  return range;
}

void within_range(Party& party, const ExponentialRange& range, std::span<const u64> a,
                  std::span<const u64> value, std::span<u64> out) {
  std::vector<u64> kept(value.begin(), value.end());
  if (range.end > 0) {
    const u64 threshold = party.rank == 0 ? range.threshold() : 0;
    std::vector<u64> below(a.size());
    std::vector<u8> keeps(a.size());
    for (std::size_t i = 0; i < a.size(); ++i)
      below[i] = ((a[i] & low_mask(range.bits)) >> range.dropped) - threshold;
    most_significant_bit(party, below, range.bits - range.dropped, keeps);
    multiplex(party, keeps, value, range.value_bits, kept);
  }
  extend_nonnegative(party, kept, range.value_bits, range.out_bits, out);
}

void cost_within_range(CostMeter& meter, i64 n, const ExponentialRange& range) {
  if (range.end > 0) {
    cost_most_significant_bit(meter, n, range.bits - range.dropped);
    cost_multiplex(meter, n, range.value_bits);
  }
  cost_extend_nonnegative(meter, n, range.value_bits, range.out_bits);
}

}  // namespace privml
