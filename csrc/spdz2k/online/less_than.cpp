// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/online/less_than.h"

#include "base/error.h"
#include "spdz2k/online/bit_and.h"
#include "spdz2k/online/bits_to_ring.h"
#include "spdz2k/online/most_significant_bit.h"
#include "spdz2k/shares/chunks.h"

namespace privml::spdz2k {
namespace {

constexpr auto kSame = [](auto x) { return x; };

// The difference has the right sign if both signs are the same; else x's sign decides.
template <class R>
void full_range(Session<R>& session, WordView<R> x, WordView<R> y, int width, BitSpan<R> out) {
  const i64 n = out.size();
  WordShares<R> numbers(3 * n);
  BitShares<R> signs(3 * n);
  for_each_share(kSame, numbers.part(0, n), x);
  for_each_share(kSame, numbers.part(n, n), y);
  subtract(x, y, numbers.part(2 * n, n));
  most_significant_bit<R>(session, numbers, width, signs);
  const BitSpan<R> sign = signs.part(0, n), differ = signs.part(n, n), order = signs.part(2 * n, n);
  add(sign, differ, differ);
  add(sign, order, sign);
  and_bits<R>(session, differ, sign, out);
  add(out, order, out);
}

// Range::full makes three comparisons of each number at once.
constexpr i64 kFullRange = kComparisons / 3;

}  // namespace

template <class R>
void less_than_bits(Session<R>& session, WordView<R> x, WordView<R> y, int width, Range range,
                    BitSpan<R> out) {
  expect(x.size() == out.size() && y.size() == out.size(), "less_than: lengths differ");
  if (range == Range::full) {
    in_parts(out.size(), kFullRange, [&](i64 first, i64 count) {
      full_range<R>(session, x.part(first, count), y.part(first, count), width,
                    out.part(first, count));
    });
    return;
  }
  WordShares<R> difference(out.size());
  subtract(x, y, difference);
  most_significant_bit<R>(session, difference, width, out);
}

template <class R>
void cost_less_than_bits(CostMeter& meter, i64 n, int width, Range range) {
  if (range == Range::restricted) return cost_most_significant_bit<R>(meter, n, width);
  in_parts(n, kFullRange, [&](i64, i64 count) {
    cost_most_significant_bit<R>(meter, 3 * count, width);
    cost_and_bits<R>(meter, count);
  });
}

template <class R>
void less_than(Session<R>& session, WordView<R> x, WordView<R> y, int width, Range range,
               WordSpan<R> out) {
  BitShares<R> bits(out.size());
  less_than_bits<R>(session, x, y, width, range, bits);
  bits_to_ring<R>(session, bits, out);
}

template <class R>
void cost_less_than(CostMeter& meter, i64 n, int width, Range range) {
  cost_less_than_bits<R>(meter, n, width, range);
  cost_bits_to_ring<R>(meter, n);
}

#define PRIVML_INSTANTIATE(R)                                                                     \
  template void less_than_bits<R>(Session<R>&, WordView<R>, WordView<R>, int, Range, BitSpan<R>); \
  template void cost_less_than_bits<R>(CostMeter&, i64, int, Range);                              \
  template void less_than<R>(Session<R>&, WordView<R>, WordView<R>, int, Range, WordSpan<R>);     \
  template void cost_less_than<R>(CostMeter&, i64, int, Range);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
