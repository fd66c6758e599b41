// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/online/multiply.h"

#include <vector>

#include "base/error.h"
#include "spdz2k/shares/chunks.h"
#include "spdz2k/shares/open.h"

namespace privml::spdz2k {
namespace {

// c + d b + e a + d e from a triple (a, b, c) and the opened d = x - a, e = y - b.
template <class R>
struct Beaver {
  using Word = typename R::Word;

  Beaver(const Session<R>& session, i64 n)
      : a(n), b(n), c(n), d(2 * n), to_share(session.rank == 0), to_mac(session.alpha()) {}

  void product_of(i64 i, Word& value, Word& mac) const {
    const Word first = static_cast<Word>(d[i]), second = static_cast<Word>(d[c.size() + i]);
    const Word both = product(first, second);
    value = static_cast<Word>(c.value[i] + product(first, b.value[i]) +
                              product(second, a.value[i]) + product(both, to_share));
    mac = static_cast<Word>(c.mac[i] + product(first, b.mac[i]) + product(second, a.mac[i]) +
                            product(both, to_mac));
  }

  WordShares<R> a, b, c;
  RecycledVector<u64> d;
  Word to_share, to_mac;
};

template <class R>
Beaver<R> open_factors(Session<R>& session, WordView<R> x, WordView<R> y) {
  const i64 n = x.size();
  Beaver<R> products(session, n);
  session.supply().triples(products.a, products.b, products.c);
  const WordSpan<R> slots = begin_opening(session, R::k, 2 * n);
  subtract(x, products.a, slots.part(0, n));
  subtract(y, products.b, slots.part(n, n));
  finish_opening(session, slots, R::k, products.d);
  return products;
}

template <class R>
void run_square(Session<R>& session, WordView<R> x, WordSpan<R> out) {
  using Word = typename R::Word;
  const i64 n = out.size();
  const Word to_share = session.rank == 0;
  const Word to_mac = session.alpha();
  WordShares<R> a(n), squares(n);
  session.supply().squares(a, squares);
  const WordSpan<R> slots = begin_opening(session, R::k, n);
  subtract(x, a, slots);
  RecycledVector<u64> opened(n);
  finish_opening(session, slots, R::k, opened);
  for (i64 i = 0; i < n; ++i) {  // a^2 + 2 d a + d^2
    const Word d = static_cast<Word>(opened[i]);
    const Word twice = static_cast<Word>(d + d), both = product(d, d);
    out.value[i] =
        static_cast<Word>(squares.value[i] + product(twice, a.value[i]) + product(both, to_share));
    out.mac[i] =
        static_cast<Word>(squares.mac[i] + product(twice, a.mac[i]) + product(both, to_mac));
  }
}

}  // namespace

template <class R>
void multiply(Side<R> side, WordView<R> x, WordView<R> y, WordSpan<R> out) {
  side.expect_lengths(x.size() == out.size() && y.size() == out.size(), "multiply: lengths differ");
  in_parts(side.count(out), kProducts, [&](i64 first, i64 count) {
    side.call(
        [&](Session<R>& session) {
          const Beaver<R> products =
              open_factors<R>(session, x.part(first, count), y.part(first, count));
          for (i64 i = 0; i < count; ++i) {
            products.product_of(i, out.value[first + i], out.mac[first + i]);
          }
        },
        [&](CostMeter& meter) {
          meter.demand.triples += count;
          cost_open<R>(meter, 2 * count, R::k);
        });
  });
}

template <class R>
void square(Side<R> side, WordView<R> x, WordSpan<R> out) {
  side.expect_lengths(x.size() == out.size(), "square: lengths differ");
  in_parts(side.count(out), kProducts, [&](i64 first, i64 count) {
    side.call(
        [&](Session<R>& session) {
          run_square<R>(session, x.part(first, count), out.part(first, count));
        },
        [&](CostMeter& meter) {
          meter.demand.squares += count;
          cost_open<R>(meter, count, R::k);
        });
  });
}

#define PRIVML_INSTANTIATE(R)                                                \
  template void multiply<R>(Side<R>, WordView<R>, WordView<R>, WordSpan<R>); \
  template void square<R>(Side<R>, WordView<R>, WordSpan<R>);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
