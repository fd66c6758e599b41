// SPDX-License-Identifier: Apache-2.0
// The source of correlated randomness for the online protocols. Every correlation is handed out
// once, to both parties in the same order. Values hold mod 2^k (bits mod 2), MACs mod 2^(k+s)
// (mod 2^s); the upper bits of a share's value are unspecified.
#pragma once

#include <array>
#include <compare>
#include <map>

#include "spdz2k/shares/shares.h"

namespace privml::spdz2k {

// Of a product of a rows x inner matrix with an inner x columns one.
struct MatrixShape {
  i64 rows, inner, columns;
  friend auto operator<=>(const MatrixShape&, const MatrixShape&) = default;
};

// Numbers of correlations of each kind.
struct Demand {
  std::array<i64, 2> masks{};  // by the owner's rank
  i64 randoms = 0;
  i64 triples = 0;
  i64 squares = 0;
  i64 bits = 0;
  i64 bit_triples = 0;
  std::map<int, i64> edabits;  // by width
  std::map<MatrixShape, i64> matrices;

  Demand& operator+=(const Demand& other);
  friend bool operator==(const Demand&, const Demand&) = default;
};

template <class R>
class Supply {
 public:
  virtual ~Supply() = default;

  // Input masks: shares of values of which `owner` gets the lowest k bits in `clear`; the other
  // party passes an empty span.
  void masks(int owner, WordSpan<R> r, std::span<u64> clear);
  // Values that neither party knows, uniform mod 2^(k+s).
  void randoms(WordSpan<R> r);
  // c = a * b mod 2^k.
  void triples(WordSpan<R> a, WordSpan<R> b, WordSpan<R> c);
  // square = a * a mod 2^k.
  void squares(WordSpan<R> a, WordSpan<R> square);
  // Random bits, 0 or 1 mod 2^k.
  void bits(WordSpan<R> b);
  // z = x * y mod 2.
  void bit_triples(BitSpan<R> x, BitSpan<R> y, BitSpan<R> z);
  // r[i] = the number of `width` bits whose bit j is bits[j * n + i]; 1 <= width <= k, n =
  // r.size().
  void edabits(int width, WordSpan<R> r, BitSpan<R> bits);

  // n triples of matrices, c = a * b mod 2^k: one after the other, each row by row.
  void matrix_triples(const MatrixShape& shape, i64 n, WordSpan<R> a, WordSpan<R> b, WordSpan<R> c);

  // Makes what is missing of `demand` now; draws beyond it are made on demand.
  virtual void reserve(const Demand& demand) = 0;

  // Everything handed out so far.
  const Demand& drawn() const { return drawn_; }

 protected:
  // For supplies that draw from themselves: restores the count of draws.
  void forget_draws_since(const Demand& drawn) { drawn_ = drawn; }

 private:
  virtual void draw_masks(int owner, WordSpan<R> r, std::span<u64> clear) = 0;
  virtual void draw_randoms(WordSpan<R> r) = 0;
  virtual void draw_triples(WordSpan<R> a, WordSpan<R> b, WordSpan<R> c) = 0;
  virtual void draw_squares(WordSpan<R> a, WordSpan<R> square) = 0;
  virtual void draw_bits(WordSpan<R> b) = 0;
  virtual void draw_bit_triples(BitSpan<R> x, BitSpan<R> y, BitSpan<R> z) = 0;
  virtual void draw_edabits(int width, WordSpan<R> r, BitSpan<R> bits) = 0;
  virtual void draw_matrix_triples(const MatrixShape& shape, i64 n, WordSpan<R> a, WordSpan<R> b,
                                   WordSpan<R> c) = 0;

  Demand drawn_;
};

}  // namespace privml::spdz2k
