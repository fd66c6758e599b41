// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/online/bits.h"

#include "base/error.h"
#include "spdz2k/shares/open.h"

namespace privml::spdz2k {
namespace {

// z + d y + e x + d e, from a triple (x, y, z) and the opened bits d, e; one array of a pair.
template <class W>
void combine(const W* x, const W* y, const W* z, const u8* d, const u8* e, W one, bool accumulate,
             i64 n, W* out) {
  const W keep = accumulate ? static_cast<W>(-1) : W{0};
  for (i64 i = 0; i < n; ++i) {
    const W first = static_cast<W>(-W{d[i]}), second = static_cast<W>(-W{e[i]});
    out[i] = static_cast<W>((out[i] & keep) + z[i] + (first & y[i]) + (second & x[i]) +
                            (first & second & one));
  }
}

template <class R>
void run_gates(Session<R>& session, std::span<const AndGate<R>> gates) {
  using BitWord = typename R::BitWord;
  i64 n = 0;
  for (const AndGate<R>& gate : gates) {
    expect(gate.x.size() == gate.out.size() && gate.y.size() == gate.out.size(),
           "and: lengths differ");
    n += gate.out.size();
  }
  if (n == 0) return;
  BitShares<R> x(n), y(n), z(n);
  session.supply().bit_triples(x, y, z);
  const BitSpan<R> slots = begin_opening_bits(session, 2 * n);
  i64 first = 0;
  for (const AndGate<R>& gate : gates) {
    const i64 count = gate.out.size();
    subtract(gate.x, x.part(first, count), slots.part(first, count));
    subtract(gate.y, y.part(first, count), slots.part(n + first, count));
    first += count;
  }
  RecycledVector<u8> opened(2 * n);
  finish_opening_bits(session, slots, opened);

  const BitWord to_share = session.rank == 0;
  first = 0;
  for (const AndGate<R>& gate : gates) {
    const i64 count = gate.out.size();
    const u8* d = opened.data() + first;
    const u8* e = d + n;
    combine<BitWord>(&x.value[first], &y.value[first], &z.value[first], d, e, to_share,
                     gate.accumulate, count, gate.out.value.data());
    combine<BitWord>(&x.mac[first], &y.mac[first], &z.mac[first], d, e, session.bit_alpha(),
                     gate.accumulate, count, gate.out.mac.data());
    first += count;
  }
}

template <class R>
void run_bits_to_ring(Session<R>& session, BitView<R> x, WordSpan<R> out) {
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

}  // namespace

template <class R>
void and_gates(Side<R> side, std::span<const AndGate<R>> gates) {
  side.call([&](auto& session) { run_gates<R>(session, gates); },
            [&](CostMeter& meter) {
              const i64 n = std::ssize(gates) * side.count(gates);
              if (n == 0) return;
              meter.demand.bit_triples += n;
              cost_open_bits<R>(meter, 2 * n);
            });
}

template <class R>
void and_bits(Side<R> side, BitView<R> x, BitView<R> y, BitSpan<R> out) {
  const AndGate<R> gate{x, y, out};
  and_gates<R>(side, {&gate, 1});
}

template <class R>
void bits_to_ring(Side<R> side, BitView<R> x, WordSpan<R> out) {
  side.call([&](auto& session) { run_bits_to_ring<R>(session, x, out); },
            [&](CostMeter& meter) {
              const i64 n = side.count(out);
              meter.demand.bits += n;
              cost_open_bits<R>(meter, n);
            });
}

#define PRIVML_INSTANTIATE(R)                                             \
  template void and_gates<R>(Side<R>, std::span<const AndGate<R>>);       \
  template void and_bits<R>(Side<R>, BitView<R>, BitView<R>, BitSpan<R>); \
  template void bits_to_ring<R>(Side<R>, BitView<R>, WordSpan<R>);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
