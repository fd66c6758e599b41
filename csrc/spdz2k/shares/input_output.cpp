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

void expect_receiver(int rank, i64 n, int to, std::size_t out) {
  expect(to >= kBothParties && to <= 1, "reveal: the receiver is party 0, party 1 or both (-1)");
  expect(static_cast<i64>(out) == (learns(rank, to) ? n : 0),
         "reveal: out must be as long as x, or empty");
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
void reveal(Session<R>& session, WordView<R> x, int bits, int to, std::span<u64> out) {
  const i64 n = x.size();
  expect_receiver(session.rank, n, to, out.size());
  expect(bits >= 1 && bits <= R::k, "reveal: bits must be in 1..k");
  check(session);
  if (to == kBothParties) {
    WipedVector<u64> opened(n);
    open(session, x, bits, opened);
    check(session);
    std::copy(opened.begin(), opened.end(), out.begin());
    return;
  }
  WordShares<R> masked(n);
  WipedVector<u64> mask(session.rank == to ? n : 0);
  session.supply().masks(to, masked, mask);
  subtract(x, masked, masked);
  std::vector<u64> opened(n);
  open<R>(session, masked, bits, opened);
  check(session);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = low_bits(opened[i] + mask[i], bits);
}

template <class R>
void reveal_bits(Session<R>& session, BitView<R> x, int to, std::span<u8> out) {
  const i64 n = x.size();
  expect_receiver(session.rank, n, to, out.size());
  check(session);
  if (to == kBothParties) {
    WipedVector<u8> opened(n);
    open_bits(session, x, opened);
    check(session);
    std::copy(opened.begin(), opened.end(), out.begin());
    return;
  }
  WordShares<R> words(n);
  BitShares<R> masked(n);
  WipedVector<u64> mask(session.rank == to ? n : 0);
  session.supply().masks(to, words, mask);
  to_bits(words, masked);
  subtract(x, masked, masked);
  std::vector<u8> opened(n);
  open_bits<R>(session, masked, opened);
  check(session);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<u8>(opened[i] ^ (mask[i] & 1));
  }
}

template <class R>
void cost_reveal(CostMeter& meter, i64 n, int bits, int to) {
  cost_check<R>(meter);
  if (to != kBothParties) meter.demand.masks[to] += n;
  cost_open<R>(meter, n, bits);
  cost_check<R>(meter);
}

template <class R>
void cost_reveal_bits(CostMeter& meter, i64 n, int to) {
  cost_check<R>(meter);
  if (to != kBothParties) meter.demand.masks[to] += n;
  cost_open_bits<R>(meter, n);
  cost_check<R>(meter);
}

#define PRIVML_INSTANTIATE(R)                                                  \
  template void input<R>(Session<R>&, int, std::span<const u64>, WordSpan<R>); \
  template void cost_input<R>(CostMeter&, int, i64);                           \
  template void reveal<R>(Session<R>&, WordView<R>, int, int, std::span<u64>); \
  template void cost_reveal<R>(CostMeter&, i64, int, int);                     \
  template void reveal_bits<R>(Session<R>&, BitView<R>, int, std::span<u8>);   \
  template void cost_reveal_bits<R>(CostMeter&, i64, int);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
