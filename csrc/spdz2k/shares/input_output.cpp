// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/shares/input_output.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/pack.h"
#include "spdz2k/shares/check.h"
#include "spdz2k/shares/open.h"

namespace privml::spdz2k {
namespace {

bool learns(int rank, int to) { return to == kBothParties || to == rank; }

template <class R>
void expect_receiver(Side<R> side, i64 n, int to, std::size_t out) {
  expect(to >= kBothParties && to <= 1, "reveal: the receiver is party 0, party 1 or both (-1)");
  side.expect_lengths(static_cast<i64>(out) == (learns(side.rank(), to) ? n : 0),
                      "reveal: out must be as long as x, or empty");
}

template <class R>
void check_all(Side<R> side) {
  side.call([](Session<R>& session) { check(session); }, cost_check<R>);
}

template <class R>
void draw_masks(Side<R> side, int owner, WordSpan<R> masks, std::span<u64> clear, i64 n) {
  side.call([&](Session<R>& session) { session.supply().masks(owner, masks, clear); },
            [&](CostMeter& meter) { meter.demand.masks[owner] += n; });
}

template <class R>
void open_words(Side<R> side, WordView<R> x, int bits, std::span<u64> out) {
  side.call([&](Session<R>& session) { open<R>(session, x, bits, out); },
            [&](CostMeter& meter) { cost_open<R>(meter, side.count(x), bits); });
}

template <class R>
void open_shared_bits(Side<R> side, BitView<R> x, std::span<u8> out) {
  side.call([&](Session<R>& session) { open_bits<R>(session, x, out); },
            [&](CostMeter& meter) { cost_open_bits<R>(meter, side.count(x)); });
}

}  // namespace

template <class R>
void input(Session<R>& session, int owner, std::span<const u64> x, WordSpan<R> out) {
  const i64 n = out.size();
  const bool mine = session.rank == owner;
  expect(std::ssize(x) == (mine ? n : 0), "input: x must be as long as out at its owner, or empty");
  WipedVector<u64> masked(mine ? n : 0);
  session.supply().masks(owner, out, masked);
  std::vector<u8> wire(packed_bytes(n, R::k));
  std::vector<u64> difference(n);
  if (mine) {
    for (i64 i = 0; i < n; ++i) difference[i] = low_bits(x[i] - masked[i], R::k);
    pack(difference.data(), n, R::k, wire.data());
    session.channel.write(wire);
  } else {
    session.channel.read(wire);
    unpack(wire.data(), n, R::k, difference.data());
  }
  add_public(session.rank, session.alpha(), out, std::span<const u64>(difference), out);
}

template <class R>
void cost_input(CostMeter& meter, int owner, i64 n) {
  meter.demand.masks[owner] += n;
  meter.message(owner, packed_bytes(n, R::k));
}

template <class R>
void reveal(Side<R> side, WordView<R> x, int bits, int to, std::span<u64> out) {
  const i64 n = side.count(x);
  expect_receiver(side, n, to, out.size());
  expect(bits >= 1 && bits <= R::k, "reveal: bits must be in 1..k");
  check_all(side);
  WipedVector<u64> opened(x.size());
  if (to == kBothParties) {
    open_words<R>(side, x, bits, opened);
    check_all(side);
    std::copy(opened.begin(), opened.end(), out.begin());
    return;
  }
  WordShares<R> masked = side.words(n);
  WipedVector<u64> mask(out.size());
  draw_masks<R>(side, to, masked, mask, n);
  subtract(x, masked, masked);
  open_words<R>(side, masked, bits, opened);
  check_all(side);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = low_bits(opened[i] + mask[i], bits);
}

template <class R>
void reveal_bits(Side<R> side, BitView<R> x, int to, std::span<u8> out) {
  const i64 n = side.count(x);
  expect_receiver(side, n, to, out.size());
  check_all(side);
  WipedVector<u8> opened(x.size());
  if (to == kBothParties) {
    open_shared_bits<R>(side, x, opened);
    check_all(side);
    std::copy(opened.begin(), opened.end(), out.begin());
    return;
  }
  WordShares<R> words = side.words(n);
  BitShares<R> masked = side.bits(n);
  WipedVector<u64> mask(out.size());
  draw_masks<R>(side, to, words, mask, n);
  to_bits(words, masked);
  subtract(x, masked, masked);
  open_shared_bits<R>(side, masked, opened);
  check_all(side);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<u8>(opened[i] ^ (mask[i] & 1));
  }
}

#define PRIVML_INSTANTIATE(R)                                                  \
  template void input<R>(Session<R>&, int, std::span<const u64>, WordSpan<R>); \
  template void cost_input<R>(CostMeter&, int, i64);                           \
  template void reveal<R>(Side<R>, WordView<R>, int, int, std::span<u64>);     \
  template void reveal_bits<R>(Side<R>, BitView<R>, int, std::span<u8>);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
