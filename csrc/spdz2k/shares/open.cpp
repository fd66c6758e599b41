// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/shares/open.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/pack.h"
#include "spdz2k/shares/check.h"

namespace privml::spdz2k {
namespace {

// Values packed at once: a multiple of 8, so that the parts join without gaps.
constexpr i64 kBlock = 4096;

template <class R>
void make_room(Session<R>& session, i64 n) {
  session.require_alive();
  const i64 pending = session.openings.pending();
  if (pending > 0 && pending + n > kMostPending) check(session);
}

// Calls part(first, count) for blocks of n values.
template <class Part>
void in_blocks(i64 n, Part&& part) {
  for (i64 first = 0; first < n; first += kBlock) part(first, std::min(kBlock, n - first));
}

}  // namespace

template <class R>
WordSpan<R> begin_opening(Session<R>& session, int bits, i64 n) {
  make_room(session, n);
  return session.openings.add(bits, n);
}

template <class R>
void finish_opening(Session<R>& session, WordSpan<R> slots, int bits, std::span<u64> out) {
  using Word = typename R::Word;
  const i64 n = slots.size();
  expect(std::ssize(out) == n, "open: out must be as long as x");
  std::vector<u8> wire(packed_bytes(kBlock, bits));
  in_blocks(n, [&](i64 first, i64 count) {
    for (i64 i = 0; i < count; ++i) out[first + i] = static_cast<u64>(slots.value[first + i]);
    const i64 bytes = packed_bytes(count, bits);
    pack(out.data() + first, count, bits, wire.data());
    session.channel.write({wire.data(), static_cast<std::size_t>(bytes)});
  });
  const Word alpha = session.alpha();
  std::vector<u64> theirs(std::min(kBlock, n));
  in_blocks(n, [&](i64 first, i64 count) {
    const i64 bytes = packed_bytes(count, bits);
    session.channel.read({wire.data(), static_cast<std::size_t>(bytes)});
    unpack(wire.data(), count, bits, theirs.data());
    for (i64 i = 0; i < count; ++i) {
      // The sum of the low parts is not reduced: its carry belongs to the upper bits of the shares.
      const Word sum =
          static_cast<Word>(low_bits(slots.value[first + i], bits) + static_cast<Word>(theirs[i]));
      slots.mac[first + i] -= product(alpha, sum);
      out[first + i] = static_cast<u64>(low_bits(sum, bits));
    }
  });
}

template <class R>
void open(Session<R>& session, WordView<R> x, int bits, std::span<u64> out) {
  expect(std::ssize(out) == x.size(), "open: out must be as long as x");
  const WordSpan<R> slots = begin_opening(session, bits, x.size());
  std::copy(x.value.begin(), x.value.end(), slots.value.begin());
  std::copy(x.mac.begin(), x.mac.end(), slots.mac.begin());
  finish_opening(session, slots, bits, out);
}

template <class R>
BitSpan<R> begin_opening_bits(Session<R>& session, i64 n) {
  make_room(session, n);
  return session.openings.add_bits(n);
}

template <class R>
void finish_opening_bits(Session<R>& session, BitSpan<R> slots, std::span<u8> out) {
  using BitWord = typename R::BitWord;
  const i64 n = slots.size();
  expect(std::ssize(out) == n, "open: out must be as long as x");
  std::vector<u8> wire(packed_bytes(kBlock, 1)), theirs(kBlock);
  in_blocks(n, [&](i64 first, i64 count) {
    for (i64 i = 0; i < count; ++i) out[first + i] = slots.value[first + i] & 1;
    pack(out.data() + first, count, 1, wire.data());
    session.channel.write({wire.data(), static_cast<std::size_t>(packed_bytes(count, 1))});
  });
  const BitWord alpha = session.bit_alpha();
  in_blocks(n, [&](i64 first, i64 count) {
    session.channel.read({wire.data(), static_cast<std::size_t>(packed_bytes(count, 1))});
    unpack(wire.data(), count, 1, theirs.data());
    u8* mine = out.data() + first;
    BitWord* mac = slots.mac.data() + first;
    for (i64 i = 0; i < count; ++i) {
      const BitWord one = static_cast<BitWord>(-BitWord{mine[i]});
      const BitWord other = static_cast<BitWord>(-BitWord{theirs[i]});
      mac[i] = static_cast<BitWord>(mac[i] - (alpha & one) - (alpha & other));
      mine[i] ^= theirs[i];
    }
  });
}

template <class R>
void open_bits(Session<R>& session, BitView<R> x, std::span<u8> out) {
  expect(std::ssize(out) == x.size(), "open: out must be as long as x");
  const BitSpan<R> slots = begin_opening_bits(session, x.size());
  std::copy(x.value.begin(), x.value.end(), slots.value.begin());
  std::copy(x.mac.begin(), x.mac.end(), slots.mac.begin());
  finish_opening_bits(session, slots, out);
}

namespace {

template <class R>
void cost_of_opening(CostMeter& meter, int group, i64 n, int bits) {
  i64 pending = 0;
  for (const auto& [key, count] : meter.pending) pending += count;
  if (pending > 0 && pending + n > kMostPending) cost_check<R>(meter);
  meter.exchange(packed_bytes(n, bits));
  if (n > 0) meter.pending[group] += n;
}

}  // namespace

template <class R>
void cost_open(CostMeter& meter, i64 n, int bits) {
  cost_of_opening<R>(meter, bits, n, bits);
}

template <class R>
void cost_open_bits(CostMeter& meter, i64 n) {
  cost_of_opening<R>(meter, kBitGroup, n, 1);
}

#define PRIVML_INSTANTIATE(R)                                                     \
  template void open<R>(Session<R>&, WordView<R>, int, std::span<u64>);           \
  template void cost_open<R>(CostMeter&, i64, int);                               \
  template void open_bits<R>(Session<R>&, BitView<R>, std::span<u8>);             \
  template void cost_open_bits<R>(CostMeter&, i64);                               \
  template WordSpan<R> begin_opening<R>(Session<R>&, int, i64);                   \
  template void finish_opening<R>(Session<R>&, WordSpan<R>, int, std::span<u64>); \
  template BitSpan<R> begin_opening_bits<R>(Session<R>&, i64);                    \
  template void finish_opening_bits<R>(Session<R>&, BitSpan<R>, std::span<u8>);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
