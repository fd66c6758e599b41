// SPDX-License-Identifier: Apache-2.0
// Correlations of one kind in stock: columns of shares that are taken out in the order in which
// they were put in, each once, and wiped behind.
#pragma once

#include <vector>

#include "spdz2k/shares.h"

namespace privml::spdz2k {

template <class R>
class Shelf {
 public:
  // One correlation is one share in each column: `words` of numbers, then `bits` of bits.
  Shelf(int words, int bits) : words_(words), bits_(bits) {}

  i64 available() const { return last_ - first_; }
  // Room for n more, which count as soon as this returns: fill word(c) and bit(c).part(...) of
  // every column before anything is taken.
  void add(i64 n);
  WordSpan<R> added_words(int column, i64 n) { return words_[column].part(last_ - n, n); }
  BitSpan<R> added_bits(int column, i64 n) { return bits_[column].part(last_ - n, n); }

  // The next correlations of every column, to read until drop(); n <= available().
  WordView<R> next_words(int column, i64 n) const { return words_[column].part(first_, n); }
  BitView<R> next_bits(int column, i64 n) const { return bits_[column].part(first_, n); }
  // Wipes the next n.
  void drop(i64 n);

  // Bytes of n correlations, shares before MACs, column by column.
  i64 bytes(i64 n) const;
  void take_bytes(i64 n, MutableBytes out);
  void put_bytes(i64 n, Bytes in);

 private:
  std::vector<WordShares<R>> words_;
  std::vector<BitShares<R>> bits_;
  i64 first_ = 0, last_ = 0;
};

}  // namespace privml::spdz2k
