// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/online/truncation.h"

#include "base/error.h"
#include "spdz2k/online/bit_less_than.h"
#include "spdz2k/online/bits.h"
#include "spdz2k/shares/chunks.h"
#include "spdz2k/shares/open.h"

namespace privml::spdz2k {
namespace {

bool is_bounded(TruncationKind kind) {
  return kind == TruncationKind::bounded || kind == TruncationKind::exact_bounded;
}

// What is added to x before and taken off the result after, so that there are no negative numbers.
// The kinds that may err at the top need none: there a negative number is one near 2^width.
u64 offset_of(const Truncation& how) {
  if (is_bounded(how.kind)) return u64{1} << (how.width - 2);
  const bool exact = how.kind == TruncationKind::exact || how.kind == TruncationKind::exact_high;
  return exact && how.is_signed ? u64{1} << (how.width - 1) : 0;
}

bool compares_low(TruncationKind kind) {
  return kind == TruncationKind::exact_low || kind == TruncationKind::exact ||
         kind == TruncationKind::exact_bounded;
}

void expect_valid(const Truncation& how, int k) {
  expect(how.width >= 2 && how.width <= k, "truncate: width must be in 2..k");
  expect(how.shift >= 1 && how.shift < how.width, "truncate: shift must be in 1..width-1");
  expect(!is_bounded(how.kind) || how.shift <= how.width - 2,
         "truncate: shift must be in 1..width-2 for bounded values");
}

// A random number below 2^width, its part above `shift`, its bits, and for bounded values its
// highest bit as a number.
template <class R>
struct Mask {
  WordShares<R> whole, high, top;
  BitShares<R> bits;
};

template <class R>
Mask<R> draw_mask(Side<R> side, const Truncation& how, i64 n) {
  const bool bounded = is_bounded(how.kind);
  const int shift = how.shift, above = how.width - shift - (bounded ? 1 : 0);
  Mask<R> mask{side.words(n), side.words(n), side.words(bounded ? n : 0),
               side.bits((shift + above) * n)};
  side.call(
      [&](Session<R>& session) {
        session.supply().edabits(shift, mask.whole, mask.bits.part(0, shift * n));
        session.supply().edabits(above, mask.high, mask.bits.part(shift * n, above * n));
        if (bounded) session.supply().bits(mask.top);
      },
      [&](CostMeter& meter) {
        meter.demand.edabits[shift] += n;
        meter.demand.edabits[above] += n;
        if (bounded) meter.demand.bits += n;
      });
  const auto add_shifted = [](const WordShares<R>& from, int by, WordShares<R>& to) {
    for_each_share([by](auto t, auto f) { return t + (f << by); }, to, to, from);
  };
  if (bounded) add_shifted(mask.top, above, mask.high);
  add_shifted(mask.high, shift, mask.whole);
  return mask;
}

// u and v' as numbers.
template <class R>
struct Carries {
  WordShares<R> high, low;
};

template <class R>
Carries<R> compare_mask(Side<R> side, std::span<const u64> c, const Truncation& how,
                        const Mask<R>& mask) {
  const i64 n = side.count(c);
  const int shift = how.shift, above = how.width - shift;
  Carries<R> carries;
  if (how.kind == TruncationKind::exact_low || is_bounded(how.kind)) {
    BitShares<R> low = side.bits(n);
    bit_greater_than<R>(side, c, side.part(mask.bits, 0, shift * n), shift, low);
    carries.low = side.words(n);
    bits_to_ring<R>(side, low, carries.low);
  } else if (how.kind == TruncationKind::exact_high) {
    BitShares<R> high = side.bits(n);
    bit_greater_than<R>(side, c, mask.bits, how.width, high);
    carries.high = side.words(n);
    bits_to_ring<R>(side, high, carries.high);
  } else {
    // u = [c > r] above the shift, or equal there and v'.
    RecycledVector<u64> c_above = side.numbers(n);
    for (std::size_t i = 0; i < c_above.size(); ++i) c_above[i] = c[i] >> shift;
    BitShares<R> both = side.bits(2 * n), equal = side.bits(n);
    const BitSpan<R> high = side.part(both, 0, n), low = side.part(both, n, n);
    const std::array<PublicComparison<R>, 2> comparisons{
        PublicComparison<R>{c_above, side.part(mask.bits, shift * n, above * n), above,
                            Order::greater, high, equal, true},
        PublicComparison<R>{c, side.part(mask.bits, 0, shift * n), shift, Order::greater, low}};
    compare_public<R>(side, comparisons);
    const AndGate<R> join{equal, low, high, true};
    and_gates<R>(side, {&join, 1});
    WordShares<R> numbers = side.words(2 * n);
    bits_to_ring<R>(side.of(2 * n), both, numbers);
    carries.high = side.words(n);
    carries.low = side.words(n);
    const auto copy = [](auto x) { return x; };
    for_each_share(copy, carries.high, side.part(numbers, 0, n));
    for_each_share(copy, carries.low, side.part(numbers, n, n));
  }
  return carries;
}

// c = r - x - offset, opened.
template <class R>
RecycledVector<u64> open_masked(Side<R> side, WordView<R> x, const Truncation& how,
                                const Mask<R>& mask) {
  const i64 n = side.count(x);
  RecycledVector<u64> c = side.numbers(n);
  side.call(
      [&](Session<R>& session) {
        const WordSpan<R> slots = begin_opening(session, how.width, n);
        subtract(mask.whole, x, slots);
        add_public(session.rank, session.alpha(), slots, u64{0} - offset_of(how), slots);
        finish_opening(session, slots, how.width, c);
      },
      [&](CostMeter& meter) { cost_open<R>(meter, n, how.width); });
  return c;
}

template <class R>
void truncate_part(Side<R> side, WordView<R> x, const Truncation& how, WordSpan<R> out) {
  using Word = typename R::Word;
  const i64 n = side.count(out);
  const int rank = side.rank(), shift = how.shift, above = how.width - shift;
  const Word alpha = side.alpha();
  const u64 offset = offset_of(how);
  const Mask<R> mask = draw_mask(side, how, n);
  RecycledVector<u64> c = open_masked(side, x, how, mask);

  Carries<R> carries;
  if (how.kind != TruncationKind::probable && how.kind != TruncationKind::bounded) {
    carries = compare_mask<R>(side, c, how, mask);
  }
  if (is_bounded(how.kind)) {
    // x + offset < 2^(width-1): c borrows if its highest bit is 1 and r's is 0.
    carries.high = side.words(n);
    RecycledVector<u64> top = side.numbers(n);
    for (std::size_t i = 0; i < top.size(); ++i) top[i] = c[i] >> (how.width - 1);
    negate(mask.top, carries.high);
    add_public(rank, alpha, carries.high, u64{1}, carries.high);
    multiply_public(carries.high, std::span<const u64>(top), carries.high);
  }
  // Constants are numbers of k bits: what they wrap around is lost above.
  for (u64& word : c) word = u64{0} - (word >> shift) - (offset >> shift);
  add_public(rank, alpha, mask.high, std::span<const u64>(c), out);
  if (compares_low(how.kind)) subtract(out, carries.low, out);
  if (carries.high.size() > 0) {
    for_each_share([above](Word o, Word u) { return o + (u << above); }, out, out, carries.high);
  }
}

}  // namespace

template <class R>
void truncate(Side<R> side, WordView<R> x, const Truncation& how, WordSpan<R> out) {
  expect_valid(how, R::k);
  side.expect_lengths(x.size() == out.size(), "truncate: lengths differ");
  in_parts(side.count(out), kComparisons, [&](i64 first, i64 count) {
    truncate_part<R>(side.of(count), side.part(x, first, count), how, side.part(out, first, count));
  });
}

#define PRIVML_INSTANTIATE(R) \
  template void truncate<R>(Side<R>, WordView<R>, const Truncation&, WordSpan<R>);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
