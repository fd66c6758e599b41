// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/online/select.h"

#include "base/error.h"
#include "spdz2k/online/bits_to_ring.h"
#include "spdz2k/online/most_significant_bit.h"
#include "spdz2k/online/multiply.h"

namespace privml::spdz2k {

template <class R>
void select(Session<R>& session, WordView<R> choice, WordView<R> x, WordView<R> y,
            WordSpan<R> out) {
  const i64 n = out.size();
  expect(choice.size() == n && x.size() == n && y.size() == n, "select: lengths differ");
  WordShares<R> difference(n);
  subtract(x, y, difference);
  multiply<R>(session, choice, difference, difference);
  add(difference, y, out);
}

template <class R>
void cost_select(CostMeter& meter, i64 n) {
  cost_multiply<R>(meter, n);
}

template <class R>
void relu(Session<R>& session, WordView<R> x, int width, WordSpan<R> out) {
  const i64 n = out.size();
  expect(x.size() == n, "relu: lengths differ");
  BitShares<R> bits(n);
  most_significant_bit<R>(session, x, width, bits);
  add_public(session.rank, session.bit_alpha(), bits, u64{1}, bits);
  WordShares<R> positive(n);
  bits_to_ring<R>(session, bits, positive);
  multiply<R>(session, positive, x, out);
}

template <class R>
void cost_relu(CostMeter& meter, i64 n, int width) {
  cost_most_significant_bit<R>(meter, n, width);
  cost_bits_to_ring<R>(meter, n);
  cost_multiply<R>(meter, n);
}

#define PRIVML_INSTANTIATE(R)                                                               \
  template void select<R>(Session<R>&, WordView<R>, WordView<R>, WordView<R>, WordSpan<R>); \
  template void cost_select<R>(CostMeter&, i64);                                            \
  template void relu<R>(Session<R>&, WordView<R>, int, WordSpan<R>);                        \
  template void cost_relu<R>(CostMeter&, i64, int);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
