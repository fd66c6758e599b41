// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/online/comparison.h"

#include <vector>

#include "base/error.h"
#include "spdz2k/online/bit_less_than.h"
#include "spdz2k/online/bits.h"
#include "spdz2k/shares/chunks.h"
#include "spdz2k/shares/open.h"

namespace privml::spdz2k {
namespace {

constexpr auto kSame = [](auto x) { return x; };

// c = x + r and the shared bits of the random r: bit j of number i is bits[j * n + i].
template <class R>
struct Masked {
  RecycledVector<u64> c;
  BitShares<R> bits;
};

template <class R>
Masked<R> open_masked(Side<R> side, WordView<R> x, int width) {
  const i64 n = side.count(x);
  Masked<R> masked{side.numbers(n), side.bits(width * n)};
  side.call(
      [&](Session<R>& session) {
        WordShares<R> r(n);
        session.supply().edabits(width, r, masked.bits);
        const WordSpan<R> slots = begin_opening(session, width, n);
        add(x, r, slots);
        finish_opening(session, slots, width, masked.c);
      },
      [&](CostMeter& meter) {
        meter.demand.edabits[width] += n;
        cost_open<R>(meter, n, width);
      });
  return masked;
}

// The difference has the right sign if both signs are the same; else x's sign decides.
template <class R>
void full_range(Side<R> side, WordView<R> x, WordView<R> y, int width, BitSpan<R> out) {
  const i64 n = side.count(out);
  WordShares<R> numbers = side.words(3 * n);
  BitShares<R> signs = side.bits(3 * n);
  for_each_share(kSame, side.part(numbers, 0, n), x);
  for_each_share(kSame, side.part(numbers, n, n), y);
  subtract(x, y, side.part(numbers, 2 * n, n));
  most_significant_bit<R>(side.of(3 * n), numbers, width, signs);
  const BitSpan<R> sign = side.part(signs, 0, n), differ = side.part(signs, n, n),
                   order = side.part(signs, 2 * n, n);
  add(sign, differ, differ);
  add(sign, order, sign);
  and_bits<R>(side, differ, sign, out);
  add(out, order, out);
}

// Range::full makes three comparisons of each number at once.
constexpr i64 kFullRange = kComparisons / 3;

// Plane `position` of r becomes [its bit = c's].
template <class W>
void agree(std::span<const u64> c, int position, W one, std::span<W> r) {
  for (std::size_t i = 0; i < r.size(); ++i) {
    r[i] = static_cast<W>(r[i] + (static_cast<W>((c[i] >> position & 1) - 1) & one));
  }
}

}  // namespace

template <class R>
void most_significant_bit(Side<R> side, WordView<R> x, int width, BitSpan<R> out) {
  expect(width >= 1 && width <= R::k, "most_significant_bit: width must be in 1..k");
  side.expect_lengths(x.size() == out.size(), "most_significant_bit: lengths differ");
  const int top = width - 1;
  in_parts(side.count(out), kComparisons, [&](i64 first, i64 count) {
    const Side<R> part = side.of(count);
    auto [c, bits] = open_masked<R>(part, side.part(x, first, count), width);

    const BitSpan<R> result = side.part(out, first, count);
    const BitSpan<R> highest = side.part(bits, top * count, count);
    if (top > 0) {
      bit_less_than<R>(part, c, side.part(bits, 0, top * count), top, result);
      add(result, highest, result);
    } else {
      for_each_share(kSame, result, highest);
    }
    for (u64& word : c) word >>= top;
    add_public(side.rank(), side.bit_alpha(), result, std::span<const u64>(c), result);
  });
}

template <class R>
void less_than_bits(Side<R> side, WordView<R> x, WordView<R> y, int width, Range range,
                    BitSpan<R> out) {
  side.expect_lengths(x.size() == out.size() && y.size() == out.size(),
                      "less_than: lengths differ");
  const i64 n = side.count(out);
  if (range == Range::full) {
    in_parts(n, kFullRange, [&](i64 first, i64 count) {
      full_range<R>(side.of(count), side.part(x, first, count), side.part(y, first, count), width,
                    side.part(out, first, count));
    });
    return;
  }
  WordShares<R> difference = side.words(n);
  subtract(x, y, difference);
  most_significant_bit<R>(side, difference, width, out);
}

template <class R>
void less_than(Side<R> side, WordView<R> x, WordView<R> y, int width, Range range,
               WordSpan<R> out) {
  BitShares<R> bits = side.bits(side.count(out));
  less_than_bits<R>(side, x, y, width, range, bits);
  bits_to_ring<R>(side, bits, out);
}

template <class R>
void equal_zero_bits(Side<R> side, WordView<R> x, int width, BitSpan<R> out) {
  using BitWord = typename R::BitWord;
  expect(width >= 1 && width <= R::k, "equal_zero: width must be in 1..k");
  side.expect_lengths(x.size() == out.size(), "equal_zero: lengths differ");
  in_parts(side.count(out), kComparisons, [&](i64 first, i64 count) {
    const Side<R> part = side.of(count);
    auto [c, bits] = open_masked<R>(part, side.part(x, first, count), width);
    std::vector<BitSpan<R>> planes;
    for (int j = 0; j < width; ++j) {
      planes.push_back(side.part(bits, j * count, count));
      agree<BitWord>(c, j, side.rank() == 0, planes[j].value);
      agree<BitWord>(c, j, side.bit_alpha(), planes[j].mac);
    }
    while (planes.size() > 1) {
      std::vector<AndGate<R>> gates;
      std::vector<BitSpan<R>> joined;
      for (std::size_t j = 0; j + 1 < planes.size(); j += 2) {
        gates.push_back({planes[j], planes[j + 1], planes[j]});
        joined.push_back(planes[j]);
      }
      if (planes.size() % 2 == 1) joined.push_back(planes.back());
      and_gates<R>(part, gates);
      planes = std::move(joined);
    }
    for_each_share(kSame, side.part(out, first, count), planes[0]);
  });
}

template <class R>
void equal_zero(Side<R> side, WordView<R> x, int width, WordSpan<R> out) {
  BitShares<R> bits = side.bits(side.count(out));
  equal_zero_bits<R>(side, x, width, bits);
  bits_to_ring<R>(side, bits, out);
}

#define PRIVML_INSTANTIATE(R)                                                                 \
  template void most_significant_bit<R>(Side<R>, WordView<R>, int, BitSpan<R>);               \
  template void less_than_bits<R>(Side<R>, WordView<R>, WordView<R>, int, Range, BitSpan<R>); \
  template void less_than<R>(Side<R>, WordView<R>, WordView<R>, int, Range, WordSpan<R>);     \
  template void equal_zero_bits<R>(Side<R>, WordView<R>, int, BitSpan<R>);                    \
  template void equal_zero<R>(Side<R>, WordView<R>, int, WordSpan<R>);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
