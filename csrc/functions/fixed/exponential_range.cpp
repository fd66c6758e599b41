// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/exponential_range.h"

#include <algorithm>

#include "functions/fixed/exponential_table.h"
#include "twopc/compare/comparison_plan.h"
#include "twopc/width/truncate_by_sign.h"

namespace privml::fixed {

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

functions::RingShares within_range(functions::Evaluator& evaluator, const ExponentialRange& range,
                                   const functions::RingShares& a, const functions::RingShares& sum,
                                   int shift) {
  const int bits = range.value_bits + shift, compared = range.bits - range.dropped;
  // Over slow links a message is worth the bits of a wider ring, of which at most half are spent.
  const int more = range.end > 0 ? range.out_bits - range.value_bits : 0;
  const auto worth = [&](const auto& planner) {
    const twopc::ComparisonPrices prices = twopc::comparison_prices(planner, a.count);
    return prices.slow() && 3 * more < prices.level / 2;
  };
  bool widens = false;
  evaluator.call([&](ot::Party& party) { widens = worth(party); },
                 [&](ot::CostMeter& meter) { widens = worth(meter); });
  const int wider = widens ? more : 0;
  const auto truncated = [&] {
    if (range.end == 0) return evaluator.truncate_reduce(sum, bits, shift);
    const u64 threshold = evaluator.constant(range.threshold());
    const functions::RingShares below = evaluator.map(a.count, compared, [&](i64 i) {
      return ((a[i] & low_mask(range.bits)) >> range.dropped) - threshold;
    });
    const twopc::TruncateIfNegative shape{bits, shift, compared, wider};
    return evaluator.result(
        a.count,
        [&](ot::Party& party, std::span<u64> out) {
          twopc::truncate_if_negative(party, shape, sum, below, out);
        },
        [&](ot::CostMeter& meter) { twopc::cost_truncate_if_negative(meter, a.count, shape); });
  };
  return evaluator.extend_nonnegative(truncated(), range.value_bits + wider, range.out_bits);
}

}  // namespace privml::fixed
