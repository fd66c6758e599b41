// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/ideal.h"

#include <cstring>
#include <vector>

#include "base/error.h"
#include "crypto/prg.h"

namespace privml::spdz2k {
namespace {

template <class W>
std::span<u8> bytes_of(W* words, i64 count) {
  return {reinterpret_cast<u8*>(words), static_cast<std::size_t>(count) * sizeof(W)};
}

template <class R>
class IdealSupply final : public Supply<R> {
 public:
  using Word = typename R::Word;
  using BitWord = typename R::BitWord;

  IdealSupply(crypto::Block seed, int rank)
      : rank_(rank),
        alpha_(ideal_key<R>(seed, 0) + ideal_key<R>(seed, 1)),
        stream_(seed ^ crypto::Block{0, 0x5d588b656c078965}) {}

  void reserve(const Demand&) override {}

 private:
  // From a buffer: one call of the generator per word would cost more than all else.
  template <class W>
  W draw() {
    if (used_ + sizeof(W) > buffer_.size()) {
      stream_.fill_bytes(buffer_);
      used_ = 0;
    }
    W word;
    std::memcpy(&word, buffer_.data() + used_, sizeof word);
    used_ += sizeof word;
    return word;
  }
  // A word with the given lowest bits and random ones above.
  template <class W>
  W extend(W value, int bits) {
    const W noise = draw<W>();
    return static_cast<W>(low_bits(value, bits) | (noise & ~low_bits(noise, bits)));
  }
  template <class W>
  void share(W full, W& value, W& mac) {
    const W value0 = draw<W>(), mac0 = draw<W>();
    const W whole = product(full, static_cast<W>(alpha_));
    value = rank_ == 0 ? value0 : static_cast<W>(full - value0);
    mac = rank_ == 0 ? mac0 : static_cast<W>(whole - mac0);
  }
  void share_word(Word value, WordSpan<R> out, i64 i) {
    share<Word>(extend<Word>(value, R::k), out.value[i], out.mac[i]);
  }
  void share_bit(BitWord value, BitSpan<R> out, i64 i) {
    share<BitWord>(extend<BitWord>(value, 1), out.value[i], out.mac[i]);
  }

  void draw_masks(int owner, WordSpan<R> r, std::span<u64> clear) override {
    for (i64 i = 0; i < r.size(); ++i) {
      const Word value = low_bits(draw<Word>(), R::k);
      share_word(value, r, i);
      if (owner == rank_) clear[i] = static_cast<u64>(value);
    }
  }
  void draw_randoms(WordSpan<R> r) override {
    for (i64 i = 0; i < r.size(); ++i) share_word(draw<Word>(), r, i);
  }
  void draw_triples(WordSpan<R> a, WordSpan<R> b, WordSpan<R> c) override {
    for (i64 i = 0; i < c.size(); ++i) {
      const Word x = draw<Word>(), y = draw<Word>();
      share_word(x, a, i);
      share_word(y, b, i);
      share_word(product(x, y), c, i);
    }
  }
  void draw_squares(WordSpan<R> a, WordSpan<R> square) override {
    for (i64 i = 0; i < a.size(); ++i) {
      const Word x = draw<Word>();
      share_word(x, a, i);
      share_word(product(x, x), square, i);
    }
  }
  void draw_bits(WordSpan<R> b) override {
    for (i64 i = 0; i < b.size(); ++i) share_word(draw<u8>() & 1, b, i);
  }
  void draw_bit_triples(BitSpan<R> x, BitSpan<R> y, BitSpan<R> z) override {
    for (i64 i = 0; i < z.size(); ++i) {
      const u8 both = draw<u8>();
      share_bit(both & 1, x, i);
      share_bit(both >> 1 & 1, y, i);
      share_bit(both & both >> 1 & 1, z, i);
    }
  }
  void draw_edabits(int width, WordSpan<R> r, BitSpan<R> bits) override {
    const i64 n = r.size();
    for (i64 i = 0; i < n; ++i) {
      const Word value = low_bits(draw<Word>(), width);
      share_word(value, r, i);
      for (int j = 0; j < width; ++j) share_bit(static_cast<u8>(value >> j & 1), bits, j * n + i);
    }
  }

  void draw_matrix_triples(const MatrixShape& shape, i64 n, WordSpan<R> a, WordSpan<R> b,
                           WordSpan<R> c) override {
    const auto [rows, inner, columns] = shape;
    std::vector<Word> x(rows * inner), y(inner * columns), z(rows * columns);
    for (i64 triple = 0; triple < n; ++triple) {
      std::fill(z.begin(), z.end(), Word{0});
      for (Word& word : x) word = draw<Word>();
      for (Word& word : y) word = draw<Word>();
      for (i64 i = 0; i < rows * inner; ++i) {
        for (i64 l = 0; l < columns; ++l) {
          z[i / inner * columns + l] += product(x[i], y[i % inner * columns + l]);
        }
      }
      const auto deal = [&](const std::vector<Word>& words, WordSpan<R> out) {
        const i64 size = std::ssize(words);
        for (i64 i = 0; i < size; ++i) share_word(words[i], out, triple * size + i);
      };
      deal(x, a);
      deal(y, b);
      deal(z, c);
    }
  }

  int rank_;
  Word alpha_;
  crypto::Prg stream_;
  std::array<u8, 4096> buffer_;
  std::size_t used_ = sizeof(buffer_);
};

}  // namespace

template <class R>
typename R::Word ideal_key(crypto::Block seed, int rank) {
  typename R::BitWord key;  // s bits
  crypto::Prg(seed ^ crypto::Block{static_cast<u64>(rank), 0x2545f4914f6cdd1d})
      .fill_bytes(bytes_of(&key, 1));
  return key;
}

template <class R>
std::unique_ptr<Supply<R>> make_ideal_supply(crypto::Block seed, int rank) {
  expect(rank == 0 || rank == 1, "ideal supply: rank is 0 or 1");
  return std::make_unique<IdealSupply<R>>(seed, rank);
}

#define PRIVML_INSTANTIATE(R)                                           \
  template typename R::Word ideal_key<R>(crypto::Block seed, int rank); \
  template std::unique_ptr<Supply<R>> make_ideal_supply<R>(crypto::Block seed, int rank);
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
