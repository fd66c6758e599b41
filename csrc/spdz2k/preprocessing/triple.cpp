// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/triple.h"

#include "base/error.h"
#include "spdz2k/preprocessing/sacrifice.h"
#include "spdz2k/preprocessing/triple_batch.h"

namespace privml::spdz2k {
namespace {

// Words of k+2s bits whose upper s bits are zero, or random.
template <class R>
void widen(Session<R>& session, std::span<const typename R::Word> from, Wide<R>* to,
           bool randomise) {
  using High = typename R::BitWord;
  WipedVector<High> high(from.size(), High{0});
  if (randomise) session.prg.fill_bytes(bytes_of(std::span<High>(high)));
  for (size_t i = 0; i < from.size(); ++i) to[i] = join<R>(from[i], high[i]);
}

}  // namespace

template <class R>
TripleBatch<R>::TripleBatch(Authentication<R>& authentication, i64 n)
    : authentication(authentication),
      session(authentication.session()),
      n(n),
      b(n),
      c(n),
      mask_c(n),
      words(5 * n),
      macs(5 * n) {}

template <class R>
void TripleBatch<R>::multiply() {
  session.prg.fill_bytes(bytes_of(std::span<Word>(b)));
  reserve_products<R>(authentication.party(), n, n);
  sent = send_products<R>(authentication, b);
  received = receive_products<R>(authentication, n);
  const crypto::Block seed = session.toss();
  weigh(authentication, seed, sent);
  weigh(authentication, seed, received);
}

template <class R>
void TripleBatch<R>::authenticate_factors() {
  WipedVector<Wide<R>> theirs(2 * n);
  widen<R>(session, received.factor, words.data(), false);
  widen<R>(session, received.mask, words.data() + n, true);
  Columns<Wide<R>> mine_by_pool, theirs_by_pool;
  const crypto::Block seed = authentication.authenticate(
      std::span<const Wide<R>>(words).first(2 * n), std::span(macs).first(2 * n), theirs,
      mine_by_pool, theirs_by_pool);
  for (i64 i = 0; i < 2 * n; ++i) macs[i] += theirs[i];

  const WipedVector<Word> masks = pool_masks(authentication, seed, n);
  for (i64 i = 0; i < n; ++i) b[i] += masks[i];
  for (i64 i = 0; i < n; ++i) {
    c[i] = product(received.factor[i], b[i]) + received.product[i] + sent.product[i];
    mask_c[i] = product(received.mask[i], b[i]) + received.mask_product[i] + sent.mask_product[i];
  }
  add_masked_products<R>(mine_by_pool, 0, seed, -1, c);
  add_masked_products<R>(theirs_by_pool, 0, seed, 1, c);
  add_masked_products<R>(mine_by_pool, n, seed, -1, mask_c);
  add_masked_products<R>(theirs_by_pool, n, seed, 1, mask_c);
}

template <class R>
crypto::Block TripleBatch<R>::authenticate_rest() {
  widen<R>(session, b, words.data() + 2 * n, false);
  widen<R>(session, c, words.data() + 3 * n, false);
  widen<R>(session, mask_c, words.data() + 4 * n, true);
  WipedVector<Wide<R>> theirs(3 * n);
  const crypto::Block seed = authentication.template authenticate<Wide<R>>(
      std::span<const Wide<R>>(words).last(3 * n), std::span(macs).last(3 * n), theirs);
  for (i64 i = 0; i < 3 * n; ++i) macs[2 * n + i] += theirs[i];
  return seed;
}

template <class R>
void TripleBatch<R>::sacrifice(crypto::Block seed) {
  using High = typename R::BitWord;
  std::vector<High> t(n);
  crypto::Prg(seed).fill_bytes(bytes_of(std::span<High>(t)));
  const Wide<R> alpha = static_cast<Wide<R>>(session.alpha());
  std::vector<Wide<R>> p(n), zeros(n), residuals(2 * n);
  const auto combine = [&](const WipedVector<Wide<R>>& x, i64 i) {
    return product(Wide<R>(t[i]), x[3 * n + i]) - x[4 * n + i] - product(p[i], x[2 * n + i]);
  };
  const auto mask = [&](const WipedVector<Wide<R>>& x, i64 i) {
    return product(Wide<R>(t[i]), x[i]) - x[n + i];
  };
  for (i64 i = 0; i < n; ++i) p[i] = mask(words, i);
  open_wide<R>(session, p);
  for (i64 i = 0; i < n; ++i) {
    residuals[i] = mask(macs, i) - product(alpha, p[i]);
    zeros[i] = combine(words, i);
    residuals[n + i] = combine(macs, i);
  }
  open_zeros<R>(session, zeros);
  for (i64 i = 0; i < n; ++i) residuals[n + i] -= product(alpha, zeros[i]);
  check_residuals<R>(session, residuals, "sacrifice of a batch of triples");
}

template <class R>
void TripleBatch<R>::write(WordSpan<R> to_a, WordSpan<R> to_b, WordSpan<R> to_c) const {
  const auto copy = [&](i64 kind, WordSpan<R> out) {
    for (i64 i = 0; i < n; ++i) {
      out.value[i] = narrow<R>(words[kind * n + i]);
      out.mac[i] = narrow<R>(macs[kind * n + i]);
    }
  };
  copy(0, to_a);
  copy(2, to_b);
  copy(3, to_c);
}

template <class R>
void generate_triples(Authentication<R>& authentication, WordSpan<R> a, WordSpan<R> b,
                      WordSpan<R> c) {
  expect(a.size() == c.size() && b.size() == c.size(), "triples: lengths differ");
  for (i64 first = 0; first < c.size(); first += kTripleBatch) {
    const i64 n = std::min(kTripleBatch, c.size() - first);
    TripleBatch<R> batch(authentication, n);
    batch.multiply();
    batch.authenticate_factors();
    batch.sacrifice(batch.authenticate_rest());
    batch.write(a.part(first, n), b.part(first, n), c.part(first, n));
  }
}

template <class R>
void cost_triples(ot::CostMeter& meter, i64 n, SilentVoleMeter* voles) {
  for (i64 first = 0; first < n; first += kTripleBatch) {
    const i64 count = std::min(kTripleBatch, n - first);
    const i64 transfers = product_transfers<R>(count);
    meter.reserve(transfers, transfers);
    meter.draw(0, transfers);
    meter.draw(1, transfers);
    meter.exchange(product_bytes<R>(count), product_bytes<R>(count));
    meter.exchange(kCoinTossBytes, kCoinTossBytes);
    cost_authenticate<R>(meter, {2 * count, 2 * count}, kWideBits<R>, true, voles);
    cost_authenticate<R>(meter, {3 * count, 3 * count}, kWideBits<R>, false, voles);
    meter.exchange(wide_bytes<R>(count), wide_bytes<R>(count));
    cost_open_zeros<R>(meter, count);
    cost_check_residuals<R>(meter);
  }
}

#define PRIVML_INSTANTIATE(R)                                                                   \
  template struct TripleBatch<R>;                                                               \
  template void generate_triples<R>(Authentication<R>&, WordSpan<R>, WordSpan<R>, WordSpan<R>); \
  template void cost_triples<R>(ot::CostMeter&, i64, SilentVoleMeter*);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
