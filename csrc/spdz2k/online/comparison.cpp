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
Masked<R> open_masked(Session<R>& session, WordView<R> x, int width) {
  const i64 n = x.size();
  Masked<R> masked{RecycledVector<u64>(n), BitShares<R>(width * n)};
  WordShares<R> r(n);
  session.supply().edabits(width, r, masked.bits);
  const WordSpan<R> slots = begin_opening(session, width, n);
  add(x, r, slots);
  finish_opening(session, slots, width, masked.c);
  return masked;
}

template <class R>
void cost_open_masked(CostMeter& meter, i64 n, int width) {
  meter.demand.edabits[width] += n;
  cost_open<R>(meter, n, width);
}

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

// Plane `position` of r becomes [its bit = c's].
template <class W>
void agree(const u64* c, int position, W one, i64 n, W* r) {
  for (i64 i = 0; i < n; ++i) {
    r[i] = static_cast<W>(r[i] + (static_cast<W>((c[i] >> position & 1) - 1) & one));
  }
}

}  // namespace

template <class R>
void most_significant_bit(Session<R>& session, WordView<R> x, int width, BitSpan<R> out) {
  expect(width >= 1 && width <= R::k, "most_significant_bit: width must be in 1..k");
  expect(x.size() == out.size(), "most_significant_bit: lengths differ");
  const int top = width - 1;
  in_parts(out.size(), kComparisons, [&](i64 first, i64 count) {
    auto [c, bits] = open_masked<R>(session, x.part(first, count), width);

    const BitSpan<R> result = out.part(first, count);
    const BitSpan<R> highest = bits.part(top * count, count);
    if (top > 0) {
      bit_less_than<R>(session, c, bits.part(0, top * count), top, result);
      add(result, highest, result);
    } else {
      for_each_share(kSame, result, highest);
    }
    for (u64& word : c) word >>= top;
    add_public(session.rank, session.bit_alpha(), result, std::span<const u64>(c), result);
  });
}

template <class R>
void cost_most_significant_bit(CostMeter& meter, i64 n, int width) {
  in_parts(n, kComparisons, [&](i64, i64 count) {
    cost_open_masked<R>(meter, count, width);
    if (width > 1) cost_bit_less_than<R>(meter, count, width - 1);
  });
}

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

template <class R>
void equal_zero_bits(Session<R>& session, WordView<R> x, int width, BitSpan<R> out) {
  using BitWord = typename R::BitWord;
  expect(width >= 1 && width <= R::k, "equal_zero: width must be in 1..k");
  expect(x.size() == out.size(), "equal_zero: lengths differ");
  in_parts(out.size(), kComparisons, [&](i64 first, i64 count) {
    auto [c, bits] = open_masked<R>(session, x.part(first, count), width);
    std::vector<BitSpan<R>> planes;
    for (int j = 0; j < width; ++j) {
      planes.push_back(bits.part(j * count, count));
      agree<BitWord>(c.data(), j, session.rank == 0, count, planes[j].value.data());
      agree<BitWord>(c.data(), j, session.bit_alpha(), count, planes[j].mac.data());
    }
    while (planes.size() > 1) {
      std::vector<AndGate<R>> gates;
      std::vector<BitSpan<R>> joined;
      for (std::size_t j = 0; j + 1 < planes.size(); j += 2) {
        gates.push_back({planes[j], planes[j + 1], planes[j]});
        joined.push_back(planes[j]);
      }
      if (planes.size() % 2 == 1) joined.push_back(planes.back());
      and_gates<R>(session, gates);
      planes = std::move(joined);
    }
    for_each_share(kSame, out.part(first, count), planes[0]);
  });
}

template <class R>
void cost_equal_zero_bits(CostMeter& meter, i64 n, int width) {
  in_parts(n, kComparisons, [&](i64, i64 count) {
    cost_open_masked<R>(meter, count, width);
    for (int planes = width; planes > 1; planes -= planes / 2) {
      cost_and_bits<R>(meter, planes / 2 * count);
    }
  });
}

template <class R>
void equal_zero(Session<R>& session, WordView<R> x, int width, WordSpan<R> out) {
  BitShares<R> bits(out.size());
  equal_zero_bits<R>(session, x, width, bits);
  bits_to_ring<R>(session, bits, out);
}

template <class R>
void cost_equal_zero(CostMeter& meter, i64 n, int width) {
  cost_equal_zero_bits<R>(meter, n, width);
  cost_bits_to_ring<R>(meter, n);
}

#define PRIVML_INSTANTIATE(R)                                                                     \
  template void most_significant_bit<R>(Session<R>&, WordView<R>, int, BitSpan<R>);               \
  template void cost_most_significant_bit<R>(CostMeter&, i64, int);                               \
  template void less_than_bits<R>(Session<R>&, WordView<R>, WordView<R>, int, Range, BitSpan<R>); \
  template void cost_less_than_bits<R>(CostMeter&, i64, int, Range);                              \
  template void less_than<R>(Session<R>&, WordView<R>, WordView<R>, int, Range, WordSpan<R>);     \
  template void cost_less_than<R>(CostMeter&, i64, int, Range);                                   \
  template void equal_zero_bits<R>(Session<R>&, WordView<R>, int, BitSpan<R>);                    \
  template void cost_equal_zero_bits<R>(CostMeter&, i64, int);                                    \
  template void equal_zero<R>(Session<R>&, WordView<R>, int, WordSpan<R>);                        \
  template void cost_equal_zero<R>(CostMeter&, i64, int);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
