// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/online/bits_to_ring.h"

#include "base/error.h"
#include "spdz2k/shares/open.h"

namespace privml::spdz2k {

template <class R>
void bits_to_ring(Session<R>& session, BitView<R> x, WordSpan<R> out) {
  using Word = typename R::Word;
  const i64 n = out.size();
  expect(x.size() == n, "bits_to_ring: lengths differ");
  session.supply().bits(out);
  const BitSpan<R> slots = begin_opening_bits(session, n);
  to_bits(out, slots);
  add(x, slots, slots);
  RecycledVector<u8> flipped(n);
  finish_opening_bits(session, slots, flipped);
  const Word to_share = session.rank == 0, to_mac = session.alpha();
  for (i64 i = 0; i < n; ++i) {  // c + r - 2 c r
    const Word mask = static_cast<Word>(-Word{flipped[i]});
    out.value[i] = static_cast<Word>((out.value[i] ^ mask) - mask + (mask & to_share));
    out.mac[i] = static_cast<Word>((out.mac[i] ^ mask) - mask + (mask & to_mac));
  }
}

template <class R>
void cost_bits_to_ring(CostMeter& meter, i64 n) {
  meter.demand.bits += n;
  cost_open_bits<R>(meter, n);
}

#define PRIVML_INSTANTIATE(R)                                          \
  template void bits_to_ring<R>(Session<R>&, BitView<R>, WordSpan<R>); \
  template void cost_bits_to_ring<R>(CostMeter&, i64);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
