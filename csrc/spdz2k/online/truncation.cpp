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
Mask<R> draw_mask(Session<R>& session, const Truncation& how, i64 n) {
  const bool bounded = is_bounded(how.kind);
  const int shift = how.shift, above = how.width - shift - (bounded ? 1 : 0);
  Mask<R> mask{WordShares<R>(n), WordShares<R>(n), {}, BitShares<R>((shift + above) * n)};
  session.supply().edabits(shift, mask.whole, mask.bits.part(0, shift * n));
  session.supply().edabits(above, mask.high, mask.bits.part(shift * n, above * n));
  const auto add_shifted = [](const WordShares<R>& from, int by, WordShares<R>& to) {
    for_each_share([by](auto t, auto f) { return t + (f << by); }, to, to, from);
  };
  if (bounded) {
    mask.top.resize(n);
    session.supply().bits(mask.top);
    add_shifted(mask.top, above, mask.high);
  }
  add_shifted(mask.high, shift, mask.whole);
  return mask;
}

// u and v' as numbers.
template <class R>
struct Carries {
  WordShares<R> high, low;
};

template <class R>
Carries<R> compare_mask(Session<R>& session, std::span<const u64> c, const Truncation& how,
                        const Mask<R>& mask) {
  const i64 n = std::ssize(c);
  const int shift = how.shift, above = how.width - shift;
  Carries<R> carries;
  if (how.kind == TruncationKind::exact_low || is_bounded(how.kind)) {
    BitShares<R> low(n);
    bit_greater_than<R>(session, c, mask.bits.part(0, shift * n), shift, low);
    carries.low.resize(n);
    bits_to_ring<R>(session, low, carries.low);
  } else if (how.kind == TruncationKind::exact_high) {
    BitShares<R> high(n);
    bit_greater_than<R>(session, c, mask.bits, how.width, high);
    carries.high.resize(n);
    bits_to_ring<R>(session, high, carries.high);
  } else {
    // u = [c > r] above the shift, or equal there and v'.
    RecycledVector<u64> c_above(n);
    for (i64 i = 0; i < n; ++i) c_above[i] = c[i] >> shift;
    BitShares<R> both(2 * n), equal(n);
    const BitSpan<R> high = both.part(0, n), low = both.part(n, n);
    const std::array<PublicComparison<R>, 2> comparisons{
        PublicComparison<R>{c_above, mask.bits.part(shift * n, above * n), above, Order::greater,
                            high, equal},
        PublicComparison<R>{c, mask.bits.part(0, shift * n), shift, Order::greater, low}};
    compare_public<R>(session, comparisons);
    const AndGate<R> join{equal, low, high, true};
    and_gates<R>(session, {&join, 1});
    WordShares<R> numbers(2 * n);
    bits_to_ring<R>(session, both, numbers);
    carries.high = WordShares<R>(n);
    carries.low = WordShares<R>(n);
    const auto copy = [](auto x) { return x; };
    for_each_share(copy, carries.high, numbers.part(0, n));
    for_each_share(copy, carries.low, numbers.part(n, n));
  }
  return carries;
}

template <class R>
void truncate_part(Session<R>& session, WordView<R> x, const Truncation& how, WordSpan<R> out) {
  using Word = typename R::Word;
  const i64 n = out.size();
  const int rank = session.rank, shift = how.shift, above = how.width - shift;
  const Word alpha = session.alpha();
  const u64 offset = offset_of(how);
  const Mask<R> mask = draw_mask(session, how, n);
  const WordSpan<R> slots = begin_opening(session, how.width, n);
  subtract(mask.whole, x, slots);
  add_public(rank, alpha, slots, u64{0} - offset, slots);
  RecycledVector<u64> c(n);
  finish_opening(session, slots, how.width, c);

  Carries<R> carries;
  if (how.kind != TruncationKind::probable && how.kind != TruncationKind::bounded) {
    carries = compare_mask<R>(session, c, how, mask);
  }
  if (is_bounded(how.kind)) {
    // x + offset < 2^(width-1): c borrows if its highest bit is 1 and r's is 0.
    carries.high.resize(n);
    RecycledVector<u64> top(n);
    for (i64 i = 0; i < n; ++i) top[i] = c[i] >> (how.width - 1);
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
void truncate(Session<R>& session, WordView<R> x, const Truncation& how, WordSpan<R> out) {
  expect_valid(how, R::k);
  expect(x.size() == out.size(), "truncate: lengths differ");
  in_parts(out.size(), kComparisons, [&](i64 first, i64 count) {
    truncate_part<R>(session, x.part(first, count), how, out.part(first, count));
  });
}

template <class R>
void cost_truncate(CostMeter& meter, i64 n, const Truncation& how) {
  const int shift = how.shift, above = how.width - shift;
  in_parts(n, kComparisons, [&](i64, i64 count) {
    const bool bounded = is_bounded(how.kind);
    meter.demand.edabits[shift] += count;
    meter.demand.edabits[above - (bounded ? 1 : 0)] += count;
    if (bounded) meter.demand.bits += count;
    cost_open<R>(meter, count, how.width);
    if (how.kind == TruncationKind::exact_low || how.kind == TruncationKind::exact_bounded) {
      cost_bit_less_than<R>(meter, count, shift);
      cost_bits_to_ring<R>(meter, count);
    } else if (how.kind == TruncationKind::exact_high) {
      cost_bit_less_than<R>(meter, count, how.width);
      cost_bits_to_ring<R>(meter, count);
    } else if (how.kind == TruncationKind::exact) {
      cost_compare_public<R>(meter, count,
                             std::array{ComparisonCost{above, true}, ComparisonCost{shift}});
      cost_and_bits<R>(meter, count);
      cost_bits_to_ring<R>(meter, 2 * count);
    }
  });
}

#define PRIVML_INSTANTIATE(R)                                                          \
  template void truncate<R>(Session<R>&, WordView<R>, const Truncation&, WordSpan<R>); \
  template void cost_truncate<R>(CostMeter&, i64, const Truncation&);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
