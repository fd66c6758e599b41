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
void ripple(Side<R> side, int width, BitView<R> x, BitView<R> y, BitSpan<R> bits,
            BitSpan<R> carry) {
  const i64 n = side.count(carry);
  BitShares<R> with_x = side.bits(n), with_y = side.bits(n);
  clear(carry);
  for (int j = 0; j < width; ++j) {
    const BitView<R> xj = side.part(x, j * n, n), yj = side.part(y, j * n, n);
    const BitSpan<R> out = side.part(bits, j * n, n);
    add(xj, carry, with_x);
    add(yj, carry, with_y);
    add(with_x, yj, out);
    if (j >= carries<R>(width)) break;
    const AndGate<R> gate{with_x, with_y, carry, true};  // carry ^= (x ^ carry)(y ^ carry)
    and_gates<R>(side, {&gate, 1});
  }
}

// At a party `party` makes the private numbers.
template <class R>
void summed(Side<R> side, ot::Party* party, int width, WordSpan<R> r, BitSpan<R> bits) {
  const i64 n = side.count(r);
  PrivateNumbers<R> numbers;
  side.call(
      [&](Session<R>& session) { numbers = generate_private_numbers(session, *party, width, n); },
      [&](CostMeter& meter) { cost_generate_private_numbers<R>(meter, width, n); });
  add(numbers.words[0], numbers.words[1], r);
  BitShares<R> carry = side.bits(n);
  ripple<R>(side, width, numbers.bits[0], numbers.bits[1], bits, carry);
  if (width < R::k) {
    WordShares<R> top = side.words(n);
    bits_to_ring<R>(side, carry, top);
    multiply_public(top, typename R::Word{1} << width, top);
    subtract(r, top, r);
  }
  side.call([](Session<R>& session) { check(session); }, cost_check<R>);
}

template <class R>
void composed(Side<R> side, int width, WordSpan<R> r, BitSpan<R> bits) {
  const i64 n = side.count(r);
  WordShares<R> bit = side.words(n);
  clear(r);
  for (int j = 0; j < width; ++j) {
    side.call([&](Session<R>& session) { session.supply().bits(bit); },
              [&](CostMeter& meter) { meter.demand.bits += n; });
    add_shifted<typename R::Word>(r, bit, j);
    to_bits(bit, side.part(bits, j * n, n));
  }
}

template <class R>
void make(Side<R> side, ot::Party* party, EdabitMethod method, int width, WordSpan<R> r,
          BitSpan<R> bits) {
  method == EdabitMethod::summed ? summed(side, party, width, r, bits)
                                 : composed(side, width, r, bits);
}

}  // namespace

template <class R>
void generate_edabits(Session<R>& session, ot::Party& party, EdabitMethod method, int width,
                      WordSpan<R> r, BitSpan<R> bits) {
  expect(1 <= width && width <= R::k, "edabits: width must be in 1..k");
  expect(bits.size() == width * r.size(), "edabits: lengths differ");
  session.require_alive();
  make<R>(session, &party, method, width, r, bits);
}

template <class R>
void cost_generate_edabits(CostMeter& meter, EdabitMethod method, int width, i64 n) {
  make<R>({meter, n}, nullptr, method, width, {}, {});
}

#define PRIVML_INSTANTIATE(R)                                                                \
  template void generate_edabits<R>(Session<R>&, ot::Party&, EdabitMethod, int, WordSpan<R>, \
                                    BitSpan<R>);                                             \
  template void cost_generate_edabits<R>(CostMeter&, EdabitMethod, int, i64);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
