// SPDX-License-Identifier: Apache-2.0
// A queue of correlations of one kind, in columns of shares: first in, first out. Each correlation
// is used once and then wiped.
#pragma once

#include <utility>
#include <vector>

#include "spdz2k/shares/shares.h"

namespace privml::spdz2k {

template <class R>
class CorrelationQueue {
 public:
  // One correlation is words[c] shares in each column c of numbers, and one in each of `bits`
  // columns of bits.
  CorrelationQueue(std::vector<i64> words, int bits)
      : per_(std::move(words)), words_(per_.size()), bits_(bits) {}

  i64 available() const { return last_ - first_; }
  // Room for n more, which count as soon as this returns: fill word(c) and bit(c).part(...) of
  // every column before anything is taken.
  void add(i64 n);
  WordSpan<R> added_words(int column, i64 n) {
    return words_[column].part((last_ - n) * per_[column], n * per_[column]);
  }
  BitSpan<R> added_bits(int column, i64 n) { return bits_[column].part(last_ - n, n); }

  // The next correlations of every column, to read until drop(); n <= available().
  WordView<R> next_words(int column, i64 n) const {
    return words_[column].part(first_ * per_[column], n * per_[column]);
  }
  BitView<R> next_bits(int column, i64 n) const { return bits_[column].part(first_, n); }
  // Wipes the next n.
  void drop(i64 n);

  // Bytes of n correlations, shares before MACs, column by column; and whether `size` bytes are
  // those of n, whatever n is.
  i64 bytes(i64 n) const;
  bool fits(i64 n, i64 size) const;
  void take_bytes(i64 n, MutableBytes out);
  void put_bytes(i64 n, Bytes in);

 private:
  // Calls each(column, shares per correlation).
  template <class Each>
  void for_each_column(Each&& each) {
    for (std::size_t c = 0; c < words_.size(); ++c) each(words_[c], per_[c]);
    for (auto& column : bits_) each(column, i64{1});
  }

  std::vector<i64> per_;
  std::vector<WordShares<R>> words_;
  std::vector<BitShares<R>> bits_;
  i64 first_ = 0, last_ = 0;
};

}  // namespace privml::spdz2k
