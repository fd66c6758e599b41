// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/online/binary_addition.h"

#include <vector>

#include "base/error.h"
#include "spdz2k/online/bit_and.h"
#include "spdz2k/shares/chunks.h"

namespace privml::spdz2k {
namespace {

constexpr auto kSame = [](auto x) { return x; };

// The position whose prefix joins that of `position` at the level of blocks of 2^level; -1: none.
int partner(int position, int level) {
  return position >> level & 1 ? (position >> level << level) - 1 : -1;
}

// A prefix from 0 up to a position of the block needs no propagation.
bool starts_at_zero(int position, int level) { return position >> level <= 1; }

// Turns whether positions 0 .. count-1 generate and propagate a carry into the carries out of them.
template <class R>
void carry_prefixes(Session<R>& session, BitSpan<R> generate, BitSpan<R> propagate, int count,
                    i64 n) {
  for (int level = 0; 1 << level < count; ++level) {
    std::vector<AndGate<R>> gates;
    for (int i = 0; i < count; ++i) {
      const int j = partner(i, level);
      if (j < 0) continue;
      const BitSpan<R> own = propagate.part(i * n, n);
      gates.push_back({own, generate.part(j * n, n), generate.part(i * n, n), true});
      if (!starts_at_zero(i, level)) gates.push_back({own, propagate.part(j * n, n), own});
    }
    and_gates<R>(session, gates);
  }
}

template <class R>
void cost_carry_prefixes(CostMeter& meter, int count, i64 n) {
  for (int level = 0; 1 << level < count; ++level) {
    i64 gates = 0;
    for (int i = 0; i < count; ++i) {
      if (partner(i, level) >= 0) gates += starts_at_zero(i, level) ? 1 : 2;
    }
    cost_and_bits<R>(meter, gates * n);
  }
}

// out = sums of the bits and the carries from below.
template <class R>
void finish_sum(Session<R>& session, BitSpan<R> generate, const BitShares<R>& sums, int width,
                i64 n, BitSpan<R> out) {
  BitShares<R> propagate((width - 1) * n);
  for_each_share(kSame, propagate, sums.part(0, (width - 1) * n));
  carry_prefixes<R>(session, generate, propagate, width - 1, n);
  for_each_share(kSame, out.part(0, n), sums.part(0, n));
  const i64 rest = (width - 1) * n;
  add(sums.part(n, rest), generate, out.part(n, rest));
}

void expect_width(int width, int k) {
  expect(width >= 1 && width <= k, "add_bits: width must be in 1..k");
}

}  // namespace

template <class R>
void add_bits(Session<R>& session, BitView<R> x, BitView<R> y, int width, BitSpan<R> out) {
  expect_width(width, R::k);
  expect(x.size() == out.size() && y.size() == out.size() && out.size() % width == 0,
         "add_bits: lengths differ");
  const i64 n = out.size() / width, carries = (width - 1) * n;
  BitShares<R> generate(carries), sums(out.size());
  and_bits<R>(session, x.part(0, carries), y.part(0, carries), generate);
  add(x, y, sums);
  finish_sum<R>(session, generate, sums, width, n, out);
}

template <class R>
void cost_add_bits(CostMeter& meter, i64 n, int width) {
  cost_and_bits<R>(meter, (width - 1) * n);
  cost_carry_prefixes<R>(meter, width - 1, n);
}

template <class R>
void add_bits_public(Session<R>& session, std::span<const u64> x, BitView<R> y, int width,
                     BitSpan<R> out) {
  expect_width(width, R::k);
  const i64 n = std::ssize(x), carries = (width - 1) * n;
  expect(y.size() == out.size() && out.size() == width * n, "add_bits_public: lengths differ");
  BitShares<R> generate(carries), sums(out.size());
  std::vector<u64> bits(n);
  for (int j = 0; j < width; ++j) {
    for (i64 i = 0; i < n; ++i) bits[i] = x[i] >> j & 1;
    const BitView<R> plane = y.part(j * n, n);
    if (j + 1 < width) {
      multiply_public(plane, std::span<const u64>(bits), generate.part(j * n, n));
    }
    add_public(session.rank, session.bit_alpha(), plane, std::span<const u64>(bits),
               sums.part(j * n, n));
  }
  finish_sum<R>(session, generate, sums, width, n, out);
}

template <class R>
void cost_add_bits_public(CostMeter& meter, i64 n, int width) {
  cost_carry_prefixes<R>(meter, width - 1, n);
}

#define PRIVML_INSTANTIATE(R)                                                          \
  template void add_bits<R>(Session<R>&, BitView<R>, BitView<R>, int, BitSpan<R>);     \
  template void cost_add_bits<R>(CostMeter&, i64, int);                                \
  template void add_bits_public<R>(Session<R>&, std::span<const u64>, BitView<R>, int, \
                                   BitSpan<R>);                                        \
  template void cost_add_bits_public<R>(CostMeter&, i64, int);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
