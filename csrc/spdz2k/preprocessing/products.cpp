// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/products.h"

#include "base/error.h"

namespace privml::spdz2k {
namespace {

constexpr i64 kBlock = 64;  // elements whose weights are made at once

template <class Word>
Word first_word(const crypto::Block& block) {
  Word word;
  std::memcpy(&word, &block, sizeof word);
  return word;
}

// Columns of transfers: first the k bits of A, then the k+s of B. Calls column(bit, is_mask).
template <class R, class Column>
void for_each_column(Column&& column) {
  for (int bit = 0; bit < R::k; ++bit) column(bit, false);
  for (int bit = 0; bit < kNarrowBits<R>; ++bit) column(bit, true);
}

// Calls use(set, bit, first, count, weights) for `sets` sets of weights of every bit of the pool.
template <class R, class Use>
void for_each_weight(crypto::Block seed, i64 n, int sets, Use&& use) {
  using Word = typename R::Word;
  constexpr int bits = kPoolShape<R>.bits();
  AlignedVector<Word> weights(sets * bits * kBlock);
  crypto::Prg random(seed);
  for (i64 first = 0; first < n; first += kBlock) {
    const i64 count = std::min(kBlock, n - first);
    random.fill_bytes(bytes_of(std::span<Word>(weights)));
    for (int set = 0; set < sets; ++set) {
      for (int bit = 0; bit < bits; ++bit) {
        use(set, bit, first, count, weights.data() + (set * bits + bit) * kBlock);
      }
    }
  }
}

template <class Word>
void add_scaled(Word* out, const Word* weights, Word factor, i64 count) {
  for (i64 i = 0; i < count; ++i) out[i] += product(weights[i], factor);
}

}  // namespace

template <class R>
void reserve_products(ot::Party& party, i64 as_sender, i64 as_receiver) {
  ot::reserve(party, product_transfers<R>(as_sender), product_transfers<R>(as_receiver));
}

template <class R>
Products<R> send_products(Authentication<R>& authentication, std::span<const typename R::Word> b) {
  using Word = typename R::Word;
  ot::Party& party = authentication.party();
  const i64 n = std::ssize(b);
  Products<R> products;
  products.product.resize(n, Word{0});
  products.mask_product.resize(n, Word{0});
  if (n == 0) return products;
  const crypto::Block delta = party.sender.delta();
  WipedVector<crypto::Block> keys(n), shifted(n);
  WipedVector<Word> correction(n);
  for_each_column<R>([&](int bit, bool is_mask) {
    ot::draw_as_sender(party, keys.data(), n);
    for (i64 i = 0; i < n; ++i) shifted[i] = keys[i] ^ delta;
    party.hash.hash(keys.data(), keys.data(), n);
    party.hash.hash(shifted.data(), shifted.data(), n);
    Word* share = is_mask ? products.mask_product.data() : products.product.data();
    for (i64 i = 0; i < n; ++i) {
      const Word pad = first_word<Word>(keys[i]);
      correction[i] = static_cast<Word>(pad - first_word<Word>(shifted[i]) + b[i]);
      share[i] -= static_cast<Word>(pad << bit);
    }
    write_column(party.channel, correction.data(), n, kNarrowBits<R> - bit);
  });
  products.by_pool = authentication.send_to_pool(b);
  for (Word& word : products.by_pool.words) word = static_cast<Word>(Word{0} - word);
  return products;
}

template <class R>
Products<R> receive_products(Authentication<R>& authentication, i64 n) {
  using Word = typename R::Word;
  ot::Party& party = authentication.party();
  Products<R> products;
  for (auto* words :
       {&products.factor, &products.mask, &products.product, &products.mask_product}) {
    words->resize(n, Word{0});
  }
  if (n == 0) return products;
  WipedVector<crypto::Block> keys(n);
  WipedVector<u8> choices(n);
  WipedVector<Word> correction(n);
  for_each_column<R>([&](int bit, bool is_mask) {
    ot::draw_as_receiver(party, keys.data(), n);
    for (i64 i = 0; i < n; ++i) choices[i] = crypto::low_bit(keys[i]);
    party.hash.hash(keys.data(), keys.data(), n);
    read_column(party.channel, correction.data(), n, kNarrowBits<R> - bit);
    Word* share = is_mask ? products.mask_product.data() : products.product.data();
    Word* factor = is_mask ? products.mask.data() : products.factor.data();
    for (i64 i = 0; i < n; ++i) {
      const Word choice = choices[i];
      const Word message = static_cast<Word>(first_word<Word>(keys[i]) +
                                             (correction[i] & static_cast<Word>(-choice)));
      share[i] += static_cast<Word>(message << bit);
      factor[i] |= static_cast<Word>(choice << bit);
    }
  });
  products.by_pool = authentication.receive_by_pool(n);
  return products;
}

template <class R>
void weigh(const Authentication<R>& authentication, crypto::Block seed, Products<R>& products) {
  using Word = typename R::Word;
  const std::span<const u8> pool = authentication.pool();
  const i64 n = std::ssize(products.product);
  for_each_weight<R>(seed, n, 2, [&](int set, int bit, i64 first, i64 count, const Word* weights) {
    const Word* column = products.by_pool[bit] + first;
    Word* share = (set ? products.mask_product : products.product).data() + first;
    for (i64 i = 0; i < count; ++i) share[i] += product(weights[i], column[i]);
    WipedVector<Word>& factor = set ? products.mask : products.factor;
    if (!factor.empty()) add_scaled<Word>(factor.data() + first, weights, pool[bit], count);
  });
  products.by_pool = {};
}

template <class R>
WipedVector<typename R::Word> pool_masks(const Authentication<R>& authentication,
                                         crypto::Block seed, i64 n) {
  using Word = typename R::Word;
  const std::span<const u8> pool = authentication.pool();
  WipedVector<Word> masks(n, Word{0});
  for_each_weight<R>(seed, n, 1, [&](int, int bit, i64 first, i64 count, const Word* weights) {
    add_scaled<Word>(masks.data() + first, weights, pool[bit], count);
  });
  return masks;
}

template <class R>
void add_masked_products(const Columns<Wide<R>>& columns, i64 first, crypto::Block seed, int sign,
                         std::span<typename R::Word> out) {
  using Word = typename R::Word;
  const Word factor = static_cast<Word>(sign);
  for_each_weight<R>(
      seed, std::ssize(out), 1, [&](int, int bit, i64 begin, i64 count, const Word* weights) {
        const Wide<R>* column = columns[bit] + first + begin;
        for (i64 i = 0; i < count; ++i) {
          out[begin + i] += product(product(factor, weights[i]), narrow<R>(column[i]));
        }
      });
}

template <class R>
i64 product_bytes(i64 n) {
  i64 bytes = bit_product_bytes(kPoolShape<R>, kNarrowBits<R>, n);
  for_each_column<R>([&](int bit, bool) { bytes += column_bytes(n, kNarrowBits<R> - bit); });
  return bytes;
}

#define PRIVML_INSTANTIATE(R)                                                                \
  template void reserve_products<R>(ot::Party&, i64, i64);                                   \
  template Products<R> send_products<R>(Authentication<R>&, std::span<const R::Word>);       \
  template Products<R> receive_products<R>(Authentication<R>&, i64);                         \
  template void weigh<R>(const Authentication<R>&, crypto::Block, Products<R>&);             \
  template WipedVector<R::Word> pool_masks<R>(const Authentication<R>&, crypto::Block, i64); \
  template void add_masked_products<R>(const Columns<Wide<R>>&, i64, crypto::Block, int,     \
                                       std::span<R::Word>);                                  \
  template i64 product_bytes<R>(i64);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
