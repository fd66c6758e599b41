// SPDX-License-Identifier: Apache-2.0
#include "lattice/columns.h"

#include <algorithm>

#include "base/error.h"
#include "base/multiversion.h"
#include "lattice/scalar_product.h"
#include "lattice/wire.h"

namespace privml::lattice {
namespace {

constexpr i64 kRowsAtOnce = 96;  // answers whose sums are held together

void clear(WordsOutput words) {
  std::ranges::fill(words.high, u64{0});
  std::ranges::fill(words.low, u16{0});
}

void add_small(const Small& small, int low_bits, WordsOutput out) {
  for (i64 i = 0; i < out.size(); ++i) {
    const u128 sum = joined(out.high[i], out.low[i], low_bits) +
                     static_cast<u128>(static_cast<__int128>(small[i]));
    out.high[i] = high_of(sum, low_bits);
    out.low[i] = low_of(sum, low_bits);
  }
}

// The high words decide if more is dropped than the low bits.
PRIVML_TARGET_CLONES
void round_high(const u64* high, i64 count, int shift, u64 mask, u64* out) {
  const u64 half = u64{1} << (shift - 1);
  for (i64 i = 0; i < count; ++i) out[i] = (high[i] + half) >> shift & mask;
}

void round(WordsView words, const ColumnChoice& choice, std::span<u64> out) {
  const int low_bits = choice.set.low_bits(), shift = choice.set.log_q - choice.answer_bits;
  const u64 mask = low_mask(choice.answer_bits);
  if (shift > low_bits) {
    // The sum may pass 2^64, but then what is lost is above the answer's bits.
    return round_high(words.high.data(), std::ssize(out), shift - low_bits, mask, out.data());
  }
  const u128 half = u128{1} << (shift - 1);
  for (i64 i = 0; i < std::ssize(out); ++i) {
    const u128 word = joined(words.high[i], words.low[i], low_bits);
    out[i] = static_cast<u64>((word + half) >> shift) & mask;
  }
}

}  // namespace

i64 key_bytes(const ColumnChoice& choice) {
  return words_bytes(choice.set.n, choice.set.low_bits());
}

i64 upload_bytes(const ColumnChoice& choice, i64 count, i64 columns) {
  return count * words_bytes(columns, choice.set.low_bits());
}

i64 answer_bytes(const ColumnChoice& choice, i64 columns) {
  return packed_bytes(columns, choice.answer_bits) + packed_bytes(choice.set.n, choice.answer_bits);
}

KeyOwner::KeyOwner(const ColumnChoice& choice, const Digest& digest, Prg& prg)
    : choice_(choice),
      digest_(digest),
      prg_(prg),
      ring_(choice.set.n, choice.set.low_bits()),
      answers_(choice.set.n, 0) {
  Small secret = sample_secret(prg_, choice.set.n);
  secret_ = ring_.transform(secret);
  for (signed char& x : secret) x = static_cast<signed char>(-x);
  negative_ = ring_.transform(secret);
}

void KeyOwner::write_key(MutableBytes out) {
  encrypt_into(public_seed(digest_, PublicPart::key, 0), {}, choice_.set.n, out);
}

void KeyOwner::encrypt(i64 index, std::span<const u64> message, MutableBytes out) {
  encrypt_into(public_seed(digest_, PublicPart::upload, index), message, std::ssize(message), out);
}

// message + e - a s; no message stands for zero.
void KeyOwner::encrypt_into(Block seed, std::span<const u64> message, i64 columns,
                            MutableBytes out) {
  const i64 n = choice_.set.n;
  const int low_bits = choice_.set.low_bits();
  expect(columns >= 0 && columns <= n, "lattice: a ciphertext has up to n coefficients");
  Words a(n), c0(n);
  Prg uniform(seed);
  sample_uniform(uniform, low_bits, a.output());
  clear(c0.output());
  // A ring of t bits lies at the top of the words.
  const int shift = 64 - (choice_.answer_bits - choice_.dropped);
  for (i64 i = 0; i < std::ssize(message); ++i) c0.high[i] = message[i] << shift;
  Small error(n);
  sample_error(prg_, error);
  add_small(error, low_bits, c0.output());
  ring_.add_product(ring_.transform(a.view()), negative_, c0.output());
  write_words(c0.view().part(0, columns), low_bits, out);
}

void KeyOwner::decrypt(Bytes answer, std::span<u64> share) const {
  const i64 n = choice_.set.n, columns = std::ssize(share);
  const int bits = choice_.answer_bits;
  if (std::ssize(answer) != answer_bytes(choice_, columns))
    throw ProtocolError("lattice: an answer has the wrong length");
  const i64 first = packed_bytes(columns, bits);
  Words c1(n), sum(n);
  read_numbers(answer.subspan(first), bits, c1.output().high);
  std::ranges::fill(c1.output().low, u16{0});
  clear(sum.output());
  read_numbers(answer.first(first), bits, sum.output().high.first(columns));
  answers_.add_product(answers_.transform(c1.view()), secret_, sum.output());
  const u64 mask = low_mask(bits);
  for (i64 i = 0; i < columns; ++i) share[i] = sum.high[i] & mask;
}

Evaluator::Evaluator(const ColumnChoice& choice, const Digest& digest, i64 inner, i64 columns,
                     Bytes key, Prg& prg)
    : choice_(choice),
      digest_(digest),
      prg_(prg),
      inner_(inner),
      columns_(columns),
      ring_(choice.set.n, choice.set.low_bits()),
      c0_(inner * columns),
      c1_(inner * choice.set.n) {
  expect(columns >= 0 && columns <= choice.set.n, "lattice: a ciphertext has up to n coefficients");
  Words polynomial(choice.set.n);
  read_words(key, choice.set.low_bits(), polynomial.output());
  p0_ = ring_.transform(polynomial.view());
  Prg uniform(public_seed(digest, PublicPart::key, 0));
  sample_uniform(uniform, choice.set.low_bits(), polynomial.output());
  p1_ = ring_.transform(polynomial.view());
}

void Evaluator::read_ciphertext(i64 index, Bytes upload) {
  const i64 n = choice_.set.n;
  expect(index >= 0 && index < inner_, "lattice: the message has fewer rows");
  read_words(upload, choice_.set.low_bits(), c0_.output().part(index * columns_, columns_));
  Prg uniform(public_seed(digest_, PublicPart::upload, index));
  sample_uniform(uniform, choice_.set.low_bits(), c1_.output().part(index * n, n));
}

void Evaluator::answer(std::span<const u64> weights, i64 rows, u64 largest, MutableBytes out,
                       std::span<u64> share) {
  const i64 n = choice_.set.n, each = answer_bytes(choice_, columns_);
  expect(std::ssize(weights) == rows * inner_ && std::ssize(out) == rows * each &&
             std::ssize(share) == rows * columns_,
         "lattice: the answers' shapes do not fit");
  for (i64 row = 0; row < rows; row += kRowsAtOnce) {
    const i64 count = std::min(kRowsAtOnce, rows - row);
    Words c0(count * columns_), c1(count * n);
    const auto part = weights.subspan(row * inner_, count * inner_);
    const int low_bits = choice_.set.low_bits();
    multiply_scalars(part, count, inner_, largest, c0_.view(), columns_, low_bits, c0.output());
    multiply_scalars(part, count, inner_, largest, c1_.view(), n, low_bits, c1.output());
    for (i64 i = 0; i < count; ++i)
      finish(c0.output().part(i * columns_, columns_), c1.output().part(i * n, n),
             out.subspan((row + i) * each, each), share.subspan((row + i) * columns_, columns_));
  }
}

void Evaluator::finish(WordsOutput c0, WordsOutput c1, MutableBytes out, std::span<u64> share) {
  const i64 n = choice_.set.n;
  const int low_bits = choice_.set.low_bits(), bits = choice_.answer_bits;
  Small blinding(n), error(n);
  sample_ternary(prg_, blinding);
  sample_error(prg_, error);
  const Transformed u = ring_.transform(blinding);
  ring_.add_product(p1_, u, c1);
  add_small(error, low_bits, c1);
  Words whole(n);
  clear(whole.output());
  std::ranges::copy(c0.high, whole.high.begin());
  std::ranges::copy(c0.low, whole.low.begin());
  ring_.add_product(p0_, u, whole.output());

  WipedVector<u64> rounded(n);
  const std::span<u64> used = std::span(rounded).first(columns_);
  round(whole.view(), choice_, used);
  prg_.fill_ring(share, bits);
  const u64 half = u64{1} << (choice_.dropped - 1), mask = low_mask(bits);
  for (i64 i = 0; i < columns_; ++i) used[i] = (used[i] + half - share[i]) & mask;
  const i64 first = packed_bytes(columns_, bits);
  write_numbers(used, bits, out.first(first));
  round(c1, choice_, rounded);
  write_numbers(rounded, bits, out.subspan(first));
}

}  // namespace privml::lattice
