// SPDX-License-Identifier: Apache-2.0
// The steps of matrix_triple.h and the state between them, so that tests can deviate from the
// protocol.
#pragma once

#include <utility>

#include "spdz2k/preprocessing/matrix_triple.h"

namespace privml::spdz2k {

// Sizes of a batch of n triples. Lines are the rows of the B's, sums those of the C's; both have
// the mask's column at their end. Keys, the entries of A, are numbered line by line, row by row
// within.
struct MatrixLayout {
  MatrixLayout(const MatrixShape& shape, i64 n)
      : rows(shape.rows),
        inner(shape.inner),
        columns(shape.columns),
        width(shape.columns + 1),
        lines(n * shape.inner),
        sums(n * shape.rows),
        factors(n * shape.rows * shape.inner) {}

  // The entry of A in row i that meets a line, and the sum that their products belong to.
  i64 factor_of(i64 line, i64 i) const { return sum_of(line, i) * inner + line % inner; }
  i64 sum_of(i64 line, i64 i) const { return line / inner * rows + i; }
  // Line and row of a key.
  std::pair<i64, i64> place_of(i64 key) const { return {key / rows, key % rows}; }
  // Lines that are multiplied by the pools at once.
  i64 lines_by_pool() const;

  i64 rows, inner, columns, width, lines, sums, factors;
};

inline constexpr i64 kKeysReserved = 1 << 14;  // entries of A whose transfers are made together
inline constexpr i64 kKeysAtOnce = 256;        // entries of A whose trees are held at once
inline constexpr i64 kMacsAtOnce = 8192;       // words authenticated at once

template <class R>
struct MatrixBatch {
  using Word = typename R::Word;

  MatrixBatch(Authentication<R>& authentication, const MatrixShape& shape, i64 n);

  // (1) of the header; the second for all keys, kKeysAtOnce at most in a call.
  void draw_factors();
  void multiply_keys(i64 first, i64 count);
  // (2) for some lines.
  void authenticate_lines(i64 first, i64 count);
  // (3): adds this party's own products, then authenticates A and C; returns a seed tossed after
  // everything was fixed.
  void add_own_products();
  crypto::Block authenticate_rest();
  void sacrifice(crypto::Block seed);

  void run();
  void write(WordSpan<R> a, WordSpan<R> b, WordSpan<R> c) const;

  Authentication<R>& authentication;
  Session<R>& session;
  const MatrixLayout at;
  WipedVector<Word> a, b, c;                                // b and c with the mask's column
  WipedVector<Wide<R>> words_b, macs_b, words_ac, macs_ac;  // as authenticated

 private:
  void widen(std::span<const Word> lines, Wide<R>* to);
  void add_line(const Word* line, Word factor, i64 sum);
  std::vector<SeedPair> trees(std::span<const TreeShape> shapes, std::span<const u8> bits);
  void hide(crypto::Block seed, i64 first, i64 count, const Columns<Wide<R>>& mine_by_pool,
            const Columns<Wide<R>>& theirs_by_pool);
};

}  // namespace privml::spdz2k
