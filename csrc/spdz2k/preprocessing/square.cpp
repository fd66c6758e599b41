// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/square.h"

#include "base/error.h"
#include "spdz2k/preprocessing/sacrifice.h"

namespace privml::spdz2k {
namespace {

// Squares whose x is of party 0: the first ones of a batch of n.
constexpr i64 first_part(i64 n) { return (n + 1) / 2; }

// Weights of a seed are used for party 0's x, those of this one for party 1's.
crypto::Block of_direction(crypto::Block seed, int owner) {
  return {seed.lo, seed.hi ^ static_cast<u64>(owner)};
}

// A batch of n in the order: `first` squares of x of party 0, the rest of party 1. This party's
// word of square i is its x or its y.
template <class R>
struct Batch {
  using Word = typename R::Word;
  using High = typename R::BitWord;

  Batch(Authentication<R>& authentication, i64 n)
      : authentication(authentication),
        session(authentication.session()),
        n(n),
        own(session.rank == 0 ? first_part(n) : n - first_part(n)),
        own_begin(session.rank == 0 ? 0 : first_part(n)),
        other_begin(session.rank == 0 ? first_part(n) : 0) {}
  i64 other() const { return n - own; }

  // Whether this party's word of square i is x.
  bool is_x(i64 i) const { return i >= own_begin && i < own_begin + own; }

  Wide<R> widen(Word low) {
    High high;
    session.prg.fill_bytes(bytes_of(std::span(&high, 1)));
    return join<R>(low, high);
  }

  void multiply() {
    y.resize(other());
    session.prg.fill_bytes(bytes_of(std::span<Word>(y)));
    reserve_products<R>(authentication.party(), other(), own);
    sent = send_products<R>(authentication, y);
    received = receive_products<R>(authentication, own);
    const crypto::Block seed = session.toss();
    weigh(authentication, of_direction(seed, session.rank), received);
    weigh(authentication, of_direction(seed, 1 - session.rank), sent);
  }

  crypto::Block authenticate() {
    // x and its mask first, so that the pool can hide y.
    WipedVector<Wide<R>> mine(2 * own), my_macs(2 * own), their_macs(2 * other());
    for (i64 i = 0; i < own; ++i) {
      mine[i] = join<R>(received.factor[i], 0);
      mine[own + i] = widen(received.mask[i]);
    }
    Columns<Wide<R>> mine_by_pool, theirs_by_pool;
    const crypto::Block seed =
        authentication.authenticate(mine, my_macs, their_macs, mine_by_pool, theirs_by_pool);
    const crypto::Block my_seed = of_direction(seed, session.rank);
    const crypto::Block their_seed = of_direction(seed, 1 - session.rank);
    add_masked_products<R>(mine_by_pool, 0, my_seed, -1, received.product);
    add_masked_products<R>(mine_by_pool, own, my_seed, -1, received.mask_product);
    add_masked_products<R>(theirs_by_pool, 0, their_seed, 1, sent.product);
    add_masked_products<R>(theirs_by_pool, other(), their_seed, 1, sent.mask_product);
    const WipedVector<Word> hidden = pool_masks(authentication, their_seed, other());
    for (i64 i = 0; i < other(); ++i) y[i] += hidden[i];

    // y, its mask, then the squares and masked squares of the whole batch.
    const i64 m = other();
    WipedVector<Wide<R>> rest(2 * m + 2 * n), rest_macs(2 * m + 2 * n),
        rest_theirs(2 * own + 2 * n);
    for (i64 i = 0; i < m; ++i) {
      rest[i] = join<R>(y[i], 0);
      session.prg.fill_bytes(bytes_of(std::span<Wide<R>>(&rest[m + i], 1)));
    }
    for (i64 i = 0; i < n; ++i) {
      const bool x = is_x(i);
      const i64 j = i - (x ? own_begin : other_begin);
      const Products<R>& products = x ? received : sent;
      const Word word = x ? received.factor[j] : y[j];
      const Word mask = x ? received.mask[j] : narrow<R>(rest[m + j]);
      rest[2 * m + i] =
          join<R>(static_cast<Word>(product(word, word) + 2 * products.product[j]), 0);
      rest[2 * m + n + i] =
          widen(static_cast<Word>(product(word, mask) + 2 * products.mask_product[j]));
    }
    const crypto::Block last =
        authentication.template authenticate<Wide<R>>(rest, rest_macs, rest_theirs);

    // In the order of the batch: this party's word, its mask, square, masked square; MAC shares of
    // its own word and mask and of the peer's.
    for (auto* column : {&words, &masks, &squares, &masked, &word_macs, &mask_macs, &square_macs,
                         &masked_macs, &their_word_macs, &their_mask_macs}) {
      column->resize(n);
    }
    for (i64 i = 0; i < n; ++i) {
      const bool x = is_x(i);
      const i64 j = i - (x ? own_begin : other_begin);
      words[i] = x ? mine[j] : rest[j];
      masks[i] = x ? mine[own + j] : rest[m + j];
      word_macs[i] = x ? my_macs[j] : rest_macs[j];
      mask_macs[i] = x ? my_macs[own + j] : rest_macs[m + j];
      // If this party has x the peer has y, and the other way round.
      their_word_macs[i] = x ? rest_theirs[j] : their_macs[j];
      their_mask_macs[i] = x ? rest_theirs[own + j] : their_macs[m + j];
      squares[i] = rest[2 * m + i];
      masked[i] = rest[2 * m + n + i];
      square_macs[i] = rest_macs[2 * m + i] + rest_theirs[2 * own + i];
      masked_macs[i] = rest_macs[2 * m + n + i] + rest_theirs[2 * own + n + i];
    }
    return last;
  }

  void sacrifice(crypto::Block seed) {
    std::vector<High> t(n);
    crypto::Prg(seed).fill_bytes(bytes_of(std::span<High>(t)));
    const Wide<R> alpha = static_cast<Wide<R>>(session.alpha());
    std::vector<Wide<R>> p(n), theirs(n), zeros(n), residuals(3 * n);
    for (i64 i = 0; i < n; ++i) p[i] = product(Wide<R>(t[i]), words[i]) - masks[i];
    exchange_wide<R>(session, p, theirs);
    for (i64 i = 0; i < n; ++i) {
      const bool x = is_x(i);
      const Wide<R> factor(t[i]);
      // x weighs p, y weighs 2 p + p', p being of the party with x.
      const Wide<R> of_x = x ? p[i] : theirs[i];
      const Wide<R> of_y = of_x + of_x + (x ? theirs[i] : p[i]);
      residuals[i] = product(factor, word_macs[i]) - mask_macs[i] - product(alpha, p[i]);
      residuals[n + i] =
          product(factor, their_word_macs[i]) - their_mask_macs[i] - product(alpha, theirs[i]);
      zeros[i] = product(factor, squares[i]) - masked[i] - product(x ? of_x : of_y, words[i]);
      residuals[2 * n + i] = product(factor, square_macs[i]) - masked_macs[i] -
                             product(x ? of_x : of_y, word_macs[i]) -
                             product(x ? of_y : of_x, their_word_macs[i]);
    }
    // The parties list p of one and p' of the other in one order.
    if (session.rank == 1) {
      std::swap_ranges(residuals.begin(), residuals.begin() + n, residuals.begin() + n);
    }
    open_zeros<R>(session, zeros);
    for (i64 i = 0; i < n; ++i) residuals[2 * n + i] -= product(alpha, zeros[i]);
    check_residuals<R>(session, residuals, "sacrifice of a batch of squares");
  }

  void write(WordSpan<R> a, WordSpan<R> square) const {
    for (i64 i = 0; i < n; ++i) {
      a.value[i] = narrow<R>(words[i]);
      a.mac[i] = narrow<R>(static_cast<Wide<R>>(word_macs[i] + their_word_macs[i]));
      square.value[i] = narrow<R>(squares[i]);
      square.mac[i] = narrow<R>(square_macs[i]);
    }
  }

  Authentication<R>& authentication;
  Session<R>& session;
  i64 n, own, own_begin, other_begin;
  WipedVector<Word> y;
  Products<R> sent, received;
  WipedVector<Wide<R>> words, masks, squares, masked;
  WipedVector<Wide<R>> word_macs, mask_macs, square_macs, masked_macs, their_word_macs,
      their_mask_macs;
};

}  // namespace

template <class R>
void generate_squares(Authentication<R>& authentication, WordSpan<R> a, WordSpan<R> square) {
  expect(a.size() == square.size(), "squares: lengths differ");
  for (i64 first = 0; first < a.size(); first += kSquareBatch) {
    const i64 n = std::min(kSquareBatch, a.size() - first);
    Batch<R> batch(authentication, n);
    batch.multiply();
    batch.sacrifice(batch.authenticate());
    batch.write(a.part(first, n), square.part(first, n));
  }
}

template <class R>
void cost_squares(ot::CostMeter& meter, i64 n, SilentVoleMeter* voles) {
  for (i64 begin = 0; begin < n; begin += kSquareBatch) {
    const i64 count = std::min(kSquareBatch, n - begin);
    // Party 0's x are received by it, those of party 1 sent by it.
    const i64 first = first_part(count), second = count - first;
    meter.reserve(product_transfers<R>(second), product_transfers<R>(first));
    meter.draw(0, product_transfers<R>(second));
    meter.draw(1, product_transfers<R>(first));
    meter.exchange(product_bytes<R>(second), product_bytes<R>(first));
    meter.exchange(kCoinTossBytes, kCoinTossBytes);
    cost_authenticate<R>(meter, {2 * first, 2 * second}, kWideBits<R>, true, voles);
    cost_authenticate<R>(meter, {2 * second + 2 * count, 2 * first + 2 * count}, kWideBits<R>,
                         false, voles);
    meter.exchange(wide_bytes<R>(count), wide_bytes<R>(count));
    cost_open_zeros<R>(meter, count);
    cost_check_residuals<R>(meter);
  }
}

#define PRIVML_INSTANTIATE(R)                                                      \
  template void generate_squares<R>(Authentication<R>&, WordSpan<R>, WordSpan<R>); \
  template void cost_squares<R>(ot::CostMeter&, i64, SilentVoleMeter*);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
