// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/online/most_significant_bit.h"

#include "base/error.h"
#include "spdz2k/online/bit_less_than.h"
#include "spdz2k/shares/chunks.h"
#include "spdz2k/shares/open.h"

namespace privml::spdz2k {

template <class R>
void most_significant_bit(Session<R>& session, WordView<R> x, int width, BitSpan<R> out) {
  expect(width >= 1 && width <= R::k, "most_significant_bit: width must be in 1..k");
  expect(x.size() == out.size(), "most_significant_bit: lengths differ");
  const int top = width - 1;
  in_parts(out.size(), kComparisons, [&](i64 first, i64 count) {
    WordShares<R> r(count);
    BitShares<R> bits(width * count);
    session.supply().edabits(width, r, bits);
    const WordSpan<R> slots = begin_opening(session, width, count);
    add(x.part(first, count), r, slots);
    RecycledVector<u64> c(count);
    finish_opening(session, slots, width, c);

    const BitSpan<R> result = out.part(first, count);
    const BitSpan<R> highest = bits.part(top * count, count);
    if (top > 0) {
      bit_less_than<R>(session, c, bits.part(0, top * count), top, result);
      add(result, highest, result);
    } else {
      for_each_share([](auto bit) { return bit; }, result, highest);
    }
    for (u64& word : c) word >>= top;
    add_public(session.rank, session.bit_alpha(), result, std::span<const u64>(c), result);
  });
}

template <class R>
void cost_most_significant_bit(CostMeter& meter, i64 n, int width) {
  in_parts(n, kComparisons, [&](i64, i64 count) {
    meter.demand.edabits[width] += count;
    cost_open<R>(meter, count, width);
    if (width > 1) cost_bit_less_than<R>(meter, count, width - 1);
  });
}

#define PRIVML_INSTANTIATE(R)                                                       \
  template void most_significant_bit<R>(Session<R>&, WordView<R>, int, BitSpan<R>); \
  template void cost_most_significant_bit<R>(CostMeter&, i64, int);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
