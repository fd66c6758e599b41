// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/online/bit_decomposition.h"

#include "base/error.h"
#include "spdz2k/online/binary_addition.h"
#include "spdz2k/shares/chunks.h"
#include "spdz2k/shares/open.h"

namespace privml::spdz2k {

template <class R>
void bit_decomposition(Session<R>& session, WordView<R> x, int width, BitSpan<R> out) {
  expect(width >= 1 && width <= R::k, "bit_decomposition: width must be in 1..k");
  const i64 n = x.size();
  expect(out.size() == width * n, "bit_decomposition: lengths differ");
  in_parts(n, kComparisons, [&](i64 first, i64 count) {
    WordShares<R> r(count);
    BitShares<R> bits(width * count);
    session.supply().edabits(width, r, bits);
    const WordSpan<R> slots = begin_opening(session, width, count);
    subtract(x.part(first, count), r, slots);
    RecycledVector<u64> c(count);
    finish_opening(session, slots, width, c);
    add_bits_public<R>(session, c, bits, width, bits);
    for (int j = 0; j < width; ++j) {
      for_each_share([](auto bit) { return bit; }, out.part(j * n + first, count),
                     bits.part(j * count, count));
    }
  });
}

template <class R>
void cost_bit_decomposition(CostMeter& meter, i64 n, int width) {
  in_parts(n, kComparisons, [&](i64, i64 count) {
    meter.demand.edabits[width] += count;
    cost_open<R>(meter, count, width);
    cost_add_bits_public<R>(meter, count, width);
  });
}

#define PRIVML_INSTANTIATE(R)                                                    \
  template void bit_decomposition<R>(Session<R>&, WordView<R>, int, BitSpan<R>); \
  template void cost_bit_decomposition<R>(CostMeter&, i64, int);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
