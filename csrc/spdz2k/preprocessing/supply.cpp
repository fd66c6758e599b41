// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/supply.h"

#include "base/error.h"

namespace privml::spdz2k {

Demand& Demand::operator+=(const Demand& other) {
  for (int owner : {0, 1}) masks[owner] += other.masks[owner];
  randoms += other.randoms;
  triples += other.triples;
  squares += other.squares;
  bits += other.bits;
  bit_triples += other.bit_triples;
  for (const auto& [width, count] : other.edabits) edabits[width] += count;
  for (const auto& [shape, count] : other.matrices) matrices[shape] += count;
  return *this;
}

template <class R>
void Supply<R>::masks(int owner, WordSpan<R> r, std::span<u64> clear) {
  expect(owner == 0 || owner == 1, "masks: the owner is party 0 or party 1");
  expect(clear.empty() || std::ssize(clear) == r.size(), "masks: lengths differ");
  draw_masks(owner, r, clear);
  drawn_.masks[owner] += r.size();
}

template <class R>
void Supply<R>::randoms(WordSpan<R> r) {
  draw_randoms(r);
  drawn_.randoms += r.size();
}

template <class R>
void Supply<R>::triples(WordSpan<R> a, WordSpan<R> b, WordSpan<R> c) {
  expect(a.size() == c.size() && b.size() == c.size(), "triples: lengths differ");
  draw_triples(a, b, c);
  drawn_.triples += c.size();
}

template <class R>
void Supply<R>::squares(WordSpan<R> a, WordSpan<R> square) {
  expect(a.size() == square.size(), "squares: lengths differ");
  draw_squares(a, square);
  drawn_.squares += a.size();
}

template <class R>
void Supply<R>::bits(WordSpan<R> b) {
  draw_bits(b);
  drawn_.bits += b.size();
}

template <class R>
void Supply<R>::bit_triples(BitSpan<R> x, BitSpan<R> y, BitSpan<R> z) {
  expect(x.size() == z.size() && y.size() == z.size(), "bit triples: lengths differ");
  draw_bit_triples(x, y, z);
  drawn_.bit_triples += z.size();
}

template <class R>
void Supply<R>::edabits(int width, WordSpan<R> r, BitSpan<R> bits) {
  expect(width >= 1 && width <= R::k, "edabits: width must be in 1..k");
  expect(bits.size() == width * r.size(), "edabits: `width` bits per value");
  if (r.size() == 0) return;
  draw_edabits(width, r, bits);
  drawn_.edabits[width] += r.size();
}

template <class R>
void Supply<R>::matrix_triples(const MatrixShape& shape, i64 n, WordSpan<R> a, WordSpan<R> b,
                               WordSpan<R> c) {
  const auto [rows, inner, columns] = shape;
  expect(n >= 0 && rows > 0 && inner > 0 && columns > 0, "matrix triples: nothing to multiply");
  expect(a.size() == n * rows * inner && b.size() == n * inner * columns &&
             c.size() == n * rows * columns,
         "matrix triples: the arrays are not of this shape");
  if (n == 0) return;
  draw_matrix_triples(shape, n, a, b, c);
  drawn_.matrices[shape] += n;
}

#define PRIVML_INSTANTIATE(R) template class Supply<R>;
PRIVML_SPDZ2K_FOR_EACH_RING(PRIVML_INSTANTIATE)

}  // namespace privml::spdz2k
