// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/matrix_batch.h"

#include <algorithm>

#include "base/error.h"
#include "spdz2k/preprocessing/sacrifice.h"
#include "spdz2k/shares/chunks.h"

namespace privml::spdz2k {
namespace {

constexpr i64 kByPoolAtOnce = 4096;  // entries of B times every bit of the pools

}  // namespace

i64 MatrixLayout::lines_by_pool() const { return std::max<i64>(1, kByPoolAtOnce / width); }

template <class R>
MatrixBatch<R>::MatrixBatch(Authentication<R>& authentication, const MatrixShape& shape, i64 n)
    : authentication(authentication),
      session(authentication.session()),
      at(shape, n),
      a(at.factors),
      b(at.lines * at.width),
      c(at.sums * at.width, Word{0}),
      words_b(b.size()),
      macs_b(b.size()),
      words_ac(a.size() + c.size()),
      macs_ac(words_ac.size()) {}

template <class R>
void MatrixBatch<R>::draw_factors() {
  session.prg.fill_bytes(bytes_of(std::span<Word>(a)));
  session.prg.fill_bytes(bytes_of(std::span<Word>(b)));
  for (Word& factor : a) factor = low_bits(factor, R::k);
}

template <class R>
std::vector<SeedPair> MatrixBatch<R>::trees(std::span<const TreeShape> shapes,
                                            std::span<const u8> bits) {
  try {
    return make_seed_trees(authentication.party(), shapes, bits);
  } catch (const SecurityAbort& error) {
    session.abort(error.what());
  }
}

template <class R>
void MatrixBatch<R>::multiply_keys(i64 first, i64 count) {
  const std::vector<TreeShape> shapes(count, kFactorShape<R>);
  WipedVector<u8> bits(count * R::k);
  for (i64 key = 0; key < count; ++key) {
    const auto [line, i] = at.place_of(first + key);
    const Word factor = a[at.factor_of(line, i)];
    for (int h = 0; h < R::k; ++h) bits[key * R::k + h] = static_cast<u8>(factor >> h & 1);
  }
  std::vector<SeedPair> seeds = trees(shapes, bits);
  WipedVector<Word> share(at.width);
  for (i64 key = 0; key < count; ++key) {
    const auto [line, i] = at.place_of(first + key);
    const std::span<const Word> words(b.data() + line * at.width, share.size());
    vector_times_key<Word>(seeds[key].peer_key, session.channel, kNarrowBits<R>, words, share);
    add_line(share.data(), static_cast<Word>(-1), at.sum_of(line, i));
  }
  for (i64 key = 0; key < count; ++key) {
    const auto [line, i] = at.place_of(first + key);
    const std::span<const u8> number(bits.data() + key * R::k, R::k);
    key_times_vector<Word>(seeds[key].own_key, session.channel, kNarrowBits<R>, number, share);
    add_line(share.data(), Word{1}, at.sum_of(line, i));
  }
}

template <class R>
void MatrixBatch<R>::add_line(const Word* line, Word factor, i64 sum) {
  Word* to = c.data() + sum * at.width;
  for (i64 l = 0; l < at.width; ++l) to[l] += product(factor, line[l]);
}

// To words of k+2s bits; the upper s bits are random in the mask's column, elsewhere zero.
template <class R>
void MatrixBatch<R>::widen(std::span<const Word> lines, Wide<R>* to) {
  using High = typename R::BitWord;
  const i64 n = std::ssize(lines);
  WipedVector<High> high(n / at.width);
  session.prg.fill_bytes(bytes_of(std::span<High>(high)));
  for (i64 i = 0; i < n; ++i) {
    const bool mask = i % at.width == at.columns;
    to[i] = join<R>(lines[i], mask ? high[i / at.width] : High{0});
  }
}

template <class R>
void MatrixBatch<R>::authenticate_lines(i64 first, i64 count) {
  const i64 begin = first * at.width, n = count * at.width;
  widen(std::span<const Word>(b).subspan(begin, n), words_b.data() + begin);
  WipedVector<Wide<R>> theirs(n);
  Columns<Wide<R>> mine_by_pool, theirs_by_pool;
  const crypto::Block seed = authentication.authenticate(
      std::span<const Wide<R>>(words_b).subspan(begin, n), std::span(macs_b).subspan(begin, n),
      theirs, mine_by_pool, theirs_by_pool);
  for (i64 i = 0; i < n; ++i) macs_b[begin + i] += theirs[i];
  hide(seed, first, count, mine_by_pool, theirs_by_pool);
}

// Adds <rho, pool> to the entries of A that meet the lines, and to C what that adds across the
// parties: the columns are shares of the products of both parties' lines and pools.
template <class R>
void MatrixBatch<R>::hide(crypto::Block seed, i64 first, i64 count,
                          const Columns<Wide<R>>& mine_by_pool,
                          const Columns<Wide<R>>& theirs_by_pool) {
  const std::span<const u8> pool = authentication.pool();
  std::vector<Word> weights(pool.size());
  crypto::Prg random(seed);
  for (i64 line = 0; line < count; ++line) {
    for (i64 i = 0; i < at.rows; ++i) {
      random.fill_bytes(bytes_of(std::span<Word>(weights)));
      Word mask{0};
      Word* sum = c.data() + at.sum_of(first + line, i) * at.width;
      for (size_t h = 0; h < pool.size(); ++h) {
        mask += product(weights[h], Word{pool[h]});
        const Wide<R>* mine = mine_by_pool[static_cast<int>(h)] + line * at.width;
        const Wide<R>* theirs = theirs_by_pool[static_cast<int>(h)] + line * at.width;
        for (i64 l = 0; l < at.width; ++l) {
          const Word both = static_cast<Word>(narrow<R>(theirs[l]) - narrow<R>(mine[l]));
          sum[l] += product(weights[h], both);
        }
      }
      a[at.factor_of(first + line, i)] += mask;
    }
  }
}

template <class R>
void MatrixBatch<R>::add_own_products() {
  for (i64 line = 0; line < at.lines; ++line) {
    for (i64 i = 0; i < at.rows; ++i) {
      add_line(b.data() + line * at.width, a[at.factor_of(line, i)], at.sum_of(line, i));
    }
  }
}

template <class R>
crypto::Block MatrixBatch<R>::authenticate_rest() {
  for (i64 i = 0; i < at.factors; ++i) words_ac[i] = join<R>(a[i], 0);
  widen(c, words_ac.data() + at.factors);
  crypto::Block seed{};
  WipedVector<Wide<R>> theirs(kMacsAtOnce);
  in_parts(std::ssize(words_ac), kMacsAtOnce, [&](i64 first, i64 count) {
    const std::span<Wide<R>> part = std::span(theirs).first(count);
    seed = authentication.template authenticate<Wide<R>>(
        std::span<const Wide<R>>(words_ac).subspan(first, count),
        std::span(macs_ac).subspan(first, count), part);
    for (i64 i = 0; i < count; ++i) macs_ac[first + i] += part[i];
  });
  return seed;
}

template <class R>
void MatrixBatch<R>::sacrifice(crypto::Block seed) {
  using High = typename R::BitWord;
  std::vector<High> t(at.columns);
  crypto::Prg(seed).fill_bytes(bytes_of(std::span<High>(t)));
  // A line or sum times the weights, less its mask.
  const auto combine = [&](const Wide<R>* line) {
    Wide<R> sum = static_cast<Wide<R>>(Wide<R>(0) - line[at.columns]);
    for (i64 l = 0; l < at.columns; ++l) sum += product(Wide<R>(t[l]), line[l]);
    return sum;
  };
  const Wide<R> alpha = static_cast<Wide<R>>(session.alpha());
  std::vector<Wide<R>> p(at.lines), zeros(at.sums), residuals(at.lines + at.sums);
  for (i64 line = 0; line < at.lines; ++line) {
    p[line] = combine(words_b.data() + line * at.width);
    residuals[line] = combine(macs_b.data() + line * at.width);
  }
  open_wide<R>(session, p);
  for (i64 line = 0; line < at.lines; ++line) residuals[line] -= product(alpha, p[line]);
  const auto remainder = [&](const WipedVector<Wide<R>>& ac, i64 sum) {
    Wide<R> rest = combine(ac.data() + at.factors + sum * at.width);
    const Wide<R>* opened = p.data() + sum / at.rows * at.inner;
    for (i64 j = 0; j < at.inner; ++j) rest -= product(ac[sum * at.inner + j], opened[j]);
    return rest;
  };
  for (i64 sum = 0; sum < at.sums; ++sum) {
    zeros[sum] = remainder(words_ac, sum);
    residuals[at.lines + sum] = remainder(macs_ac, sum);
  }
  open_zeros<R>(session, zeros);
  for (i64 i = 0; i < at.sums; ++i) residuals[at.lines + i] -= product(alpha, zeros[i]);
  check_residuals<R>(session, residuals, "sacrifice of a batch of matrix triples");
}

template <class R>
void MatrixBatch<R>::run() {
  draw_factors();
  in_parts(at.factors, kKeysReserved, [&](i64 begin, i64 keys) {
    ot::reserve(authentication.party(), keys * R::k, keys * R::k);
    in_parts(keys, kKeysAtOnce, [&](i64 first, i64 count) { multiply_keys(begin + first, count); });
  });
  in_parts(at.lines, at.lines_by_pool(),
           [&](i64 first, i64 count) { authenticate_lines(first, count); });
  add_own_products();
  sacrifice(authenticate_rest());
}

template <class R>
void MatrixBatch<R>::write(WordSpan<R> to_a, WordSpan<R> to_b, WordSpan<R> to_c) const {
  const auto copy = [](const Wide<R>* from, std::span<Word> to) {
    for (size_t i = 0; i < to.size(); ++i) to[i] = narrow<R>(from[i]);
  };
  // Of every line `columns` of `width` words.
  const auto copy_lines = [&](const Wide<R>* from, i64 lines, std::span<Word> to) {
    for (i64 line = 0; line < lines; ++line) {
      copy(from + line * at.width, to.subspan(line * at.columns, at.columns));
    }
  };
  copy(words_ac.data(), to_a.value);
  copy(macs_ac.data(), to_a.mac);
  copy_lines(words_b.data(), at.lines, to_b.value);
  copy_lines(macs_b.data(), at.lines, to_b.mac);
  copy_lines(words_ac.data() + at.factors, at.sums, to_c.value);
  copy_lines(macs_ac.data() + at.factors, at.sums, to_c.mac);
}

template struct MatrixBatch<Ring8>;
template struct MatrixBatch<Ring32>;
template struct MatrixBatch<Ring64>;

}  // namespace privml::spdz2k
