// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/edabits.h"

#include <algorithm>

#include "base/error.h"
#include "spdz2k/online/bits.h"
#include "spdz2k/preprocessing/private_numbers.h"
#include "spdz2k/shares/check.h"

namespace privml::spdz2k {
namespace {

template <class W>
void clear(ShareSpan<W> shares) {
  std::fill(shares.value.begin(), shares.value.end(), W{0});
  std::fill(shares.mac.begin(), shares.mac.end(), W{0});
}

// r += 2^shift * x
template <class W>
void add_shifted(ShareSpan<W> r, ShareView<W> x, int shift) {
  for_each_share([shift](W sum, W more) { return sum + static_cast<W>(more << shift); }, r, r, x);
}

// The number of carries that an adder needs: into bits 1 .. width - 1, and out of a number below
// 2^k.
template <class R>
int carries(int width) {
  return width < R::k ? width : width - 1;
}

// bits = x + y mod 2^width; carry: out of the top, if width < k.
template <class R>
void ripple(Session<R>& session, int width, BitView<R> x, BitView<R> y, BitSpan<R> bits,
            BitSpan<R> carry) {
  const i64 n = carry.size();
  BitShares<R> with_x(n), with_y(n);
  clear(carry);
  for (int j = 0; j < width; ++j) {
    const BitView<R> xj = x.part(j * n, n), yj = y.part(j * n, n);
    const BitSpan<R> out = bits.part(j * n, n);
    add(xj, carry, with_x);
    add(yj, carry, with_y);
    add(with_x, yj, out);
    if (j >= carries<R>(width)) break;
    const AndGate<R> gate{with_x, with_y, carry, true};  // carry ^= (x ^ carry)(y ^ carry)
    and_gates<R>(session, {&gate, 1});
  }
}

template <class R>
void summed(Session<R>& session, Party& party, int width, WordSpan<R> r, BitSpan<R> bits) {
  const i64 n = r.size();
  const PrivateNumbers<R> numbers = generate_private_numbers(session, party, width, n);
  add(numbers.words[0], numbers.words[1], r);
  BitShares<R> carry(n);
  ripple<R>(session, width, numbers.bits[0], numbers.bits[1], bits, carry);
  if (width < R::k) {
    WordShares<R> top(n);
    bits_to_ring<R>(session, carry, top);
    multiply_public(top, typename R::Word{1} << width, top);
    subtract(r, top, r);
  }
  check(session);
}

template <class R>
void composed(Session<R>& session, int width, WordSpan<R> r, BitSpan<R> bits) {
  const i64 n = r.size();
  WordShares<R> bit(n);
  clear(r);
  for (int j = 0; j < width; ++j) {
    session.supply().bits(bit);
    add_shifted<typename R::Word>(r, bit, j);
    to_bits(bit, bits.part(j * n, n));
  }
}

}  // namespace

template <class R>
void generate_edabits(Session<R>& session, Party& party, EdabitMethod method, int width,
                      WordSpan<R> r, BitSpan<R> bits) {
  expect(1 <= width && width <= R::k, "edabits: width must be in 1..k");
  expect(bits.size() == width * r.size(), "edabits: lengths differ");
  session.require_alive();
  method == EdabitMethod::summed ? summed(session, party, width, r, bits)
                                 : composed(session, width, r, bits);
}

template <class R>
void cost_generate_edabits(GenerationMeter& meter, EdabitMethod method, int width, i64 n) {
  if (method == EdabitMethod::composed) {
    meter.session.demand.bits += width * n;
    return;
  }
  cost_generate_private_numbers<R>(meter, width, n);
  meter.online([&](CostMeter& online) {
    for (int j = 0; j < carries<R>(width); ++j) cost_and_bits<R>(online, n);
    if (width < R::k) cost_bits_to_ring<R>(online, n);
    cost_check<R>(online);
  });
}

#define PRIVML_INSTANTIATE(R)                                                            \
  template void generate_edabits<R>(Session<R>&, Party&, EdabitMethod, int, WordSpan<R>, \
                                    BitSpan<R>);                                         \
  template void cost_generate_edabits<R>(GenerationMeter&, EdabitMethod, int, i64);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
