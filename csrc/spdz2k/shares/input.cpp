// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/shares/input.h"

#include <vector>

#include "base/error.h"
#include "base/pack.h"

namespace privml::spdz2k {

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

#define PRIVML_INSTANTIATE(R)                                                  \
  template void input<R>(Session<R>&, int, std::span<const u64>, WordSpan<R>); \
  template void cost_input<R>(CostMeter&, int, i64);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
