// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/online/equality.h"

#include <vector>

#include "base/error.h"
#include "spdz2k/online/bit_and.h"
#include "spdz2k/online/bits_to_ring.h"
#include "spdz2k/shares/chunks.h"
#include "spdz2k/shares/open.h"

namespace privml::spdz2k {
namespace {

// Plane `position` of r becomes [its bit = c's].
template <class W>
void agree(const u64* c, int position, W one, i64 n, W* r) {
  for (i64 i = 0; i < n; ++i) {
    r[i] = static_cast<W>(r[i] + (static_cast<W>((c[i] >> position & 1) - 1) & one));
  }
}

}  // namespace

template <class R>
void equal_zero_bits(Session<R>& session, WordView<R> x, int width, BitSpan<R> out) {
  using BitWord = typename R::BitWord;
  expect(width >= 1 && width <= R::k, "equal_zero: width must be in 1..k");
  expect(x.size() == out.size(), "equal_zero: lengths differ");
  in_parts(out.size(), kComparisons, [&](i64 first, i64 count) {
    WordShares<R> r(count);
    BitShares<R> bits(width * count);
    session.supply().edabits(width, r, bits);
    const WordSpan<R> slots = begin_opening(session, width, count);
    add(x.part(first, count), r, slots);
    RecycledVector<u64> c(count);
    finish_opening(session, slots, width, c);
    std::vector<BitSpan<R>> planes;
    for (int j = 0; j < width; ++j) {
      planes.push_back(bits.part(j * count, count));
      agree<BitWord>(c.data(), j, session.rank == 0, count, planes[j].value.data());
      agree<BitWord>(c.data(), j, session.bit_alpha(), count, planes[j].mac.data());
    }
    while (planes.size() > 1) {
      std::vector<AndGate<R>> gates;
      std::vector<BitSpan<R>> joined;
      for (std::size_t j = 0; j + 1 < planes.size(); j += 2) {
        gates.push_back({planes[j], planes[j + 1], planes[j]});
        joined.push_back(planes[j]);
      }
      if (planes.size() % 2 == 1) joined.push_back(planes.back());
      and_gates<R>(session, gates);
      planes = std::move(joined);
    }
    for_each_share([](auto bit) { return bit; }, out.part(first, count), planes[0]);
  });
}

template <class R>
void cost_equal_zero_bits(CostMeter& meter, i64 n, int width) {
  in_parts(n, kComparisons, [&](i64, i64 count) {
    meter.demand.edabits[width] += count;
    cost_open<R>(meter, count, width);
    for (int planes = width; planes > 1; planes -= planes / 2) {
      cost_and_bits<R>(meter, planes / 2 * count);
    }
  });
}

template <class R>
void equal_zero(Session<R>& session, WordView<R> x, int width, WordSpan<R> out) {
  BitShares<R> bits(out.size());
  equal_zero_bits<R>(session, x, width, bits);
  bits_to_ring<R>(session, bits, out);
}

template <class R>
void cost_equal_zero(CostMeter& meter, i64 n, int width) {
  cost_equal_zero_bits<R>(meter, n, width);
  cost_bits_to_ring<R>(meter, n);
}

#define PRIVML_INSTANTIATE(R)                                                  \
  template void equal_zero_bits<R>(Session<R>&, WordView<R>, int, BitSpan<R>); \
  template void cost_equal_zero_bits<R>(CostMeter&, i64, int);                 \
  template void equal_zero<R>(Session<R>&, WordView<R>, int, WordSpan<R>);     \
  template void cost_equal_zero<R>(CostMeter&, i64, int);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
