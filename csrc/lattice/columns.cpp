// SPDX-License-Identifier: Apache-2.0
#include "lattice/columns.h"

#include <algorithm>

#include "base/error.h"
#include "base/multiversion.h"
#include "base/parallel.h"
#include "lattice/scalar_product.h"
#include "lattice/words.h"

namespace privml::lattice {
namespace {

constexpr i64 kRowsAtOnce = 192;   // answers whose sums a thread holds together
constexpr i64 kRowsOfThread = 12;  // whole kernels of products of scalars

// U of answer `index`, and the stream that its e' comes from.
Small blinding_of(crypto::Block key, i64 index, i64 n, crypto::Prg& stream) {
  crypto::Block seed{static_cast<u64>(index), 0};
  crypto::Aes128(key).encrypt(&seed, &seed, 1);
  stream = crypto::Prg(seed);
  return sample_secret(stream, n, n);
}

// Calls part(rows) for some rows at a time, on up to so many threads.
template <class Part>
void in_parts(const WeightRows& weights, i64 inner, int threads, Part&& part) {
  in_parallel(weights.rows, kRowsOfThread, threads, [&](i64 first, i64 rows) {
    for (i64 row = first; row < first + rows; row += kRowsAtOnce) {
      const i64 count = std::min(kRowsAtOnce, first + rows - row);
      part(WeightRows{weights.words.subspan(row * inner, count * inner), row, count,
                      weights.largest});
    }
  });
}

// Each row's, drawn before threads divide the rows.
WipedVector<crypto::Block> seeds_of(i64 rows, crypto::Prg& prg) {
  WipedVector<crypto::Block> seeds(rows);
  prg.fill_blocks(seeds.data(), rows);
  return seeds;
}

// The high words decide if more is dropped than the low bits.
PRIVML_TARGET_CLONES
void shift_high(const u64* high, i64 count, u64 added, int shift, u64 mask, u64* out) {
  for (i64 i = 0; i < count; ++i) out[i] = (high[i] + added) >> shift & mask;
}

// To the first `bits` bits, fewer than log_q, rounded down after `halves` halves of the last of
// them are added.
void round_down(WordsView words, const RingSet& set, int bits, int halves, std::span<u64> out) {
  const int low_bits = set.low_bits(), shift = set.log_q - bits;
  const u64 mask = low_mask(bits);
  if (shift > low_bits) {
    // The sum may pass 2^64, but then what is lost is above the answer's bits.
    const u64 added = static_cast<u64>(halves) << (shift - low_bits - 1);
    return shift_high(words.high.data(), std::ssize(out), added, shift - low_bits, mask,
                      out.data());
  }
  const u128 added = static_cast<u128>(halves) << (shift - 1);
  for (i64 i = 0; i < std::ssize(out); ++i) {
    const u128 word = joined(words.high[i], words.low[i], low_bits);
    out[i] = static_cast<u64>((word + added) >> shift) & mask;
  }
}

// To the nearest.
void round(WordsView words, const RingSet& set, int bits, std::span<u64> out) {
  round_down(words, set, bits, 1, out);
}

}  // namespace

i64 halves_bytes(const ColumnChoice& choice, i64 count) {
  return count * packed_bytes(choice.set.n, choice.answer_bits);
}

i64 key_bytes(const RingSet& set) { return words_bytes(set.n, set.low_bits()); }

i64 upload_bytes(const ColumnChoice& choice, i64 numbers) {
  const int low_bits = choice.upload_bits - 64;
  return low_bits >= 0 ? words_bytes(numbers, low_bits) : packed_bytes(numbers, choice.upload_bits);
}

void write_upload(const ColumnChoice& choice, WordsView c0, MutableBytes out) {
  const int bits = choice.upload_bits, shift = choice.set.log_q - bits;
  if (shift == 0) return write_words(c0, choice.set.low_bits(), out);
  if (bits <= 64) {
    WipedVector<u64> rounded(c0.size());
    round(c0, choice.set, bits, rounded);
    return bits == 64 ? write_words({rounded, c0.low}, 0, out) : write_numbers(rounded, bits, out);
  }
  Words rounded(c0.size());
  for (i64 i = 0; i < c0.size(); ++i) {
    const u128 word = joined(c0.high[i], c0.low[i], choice.set.low_bits());
    const u128 number = (word + (u128{1} << (shift - 1))) >> shift;
    rounded.high[i] = high_of(number, bits - 64);
    rounded.low[i] = low_of(number, bits - 64);
  }
  write_words(rounded.view(), bits - 64, out);
}

void read_upload(const ColumnChoice& choice, Bytes in, WordsOutput out) {
  const int bits = choice.upload_bits;
  if (bits < 64) {
    read_numbers(in, bits, out.high);
    for (u64& word : out.high) word <<= 64 - bits;
    std::ranges::fill(out.low, u16{0});
    return;
  }
  read_words(in, bits - 64, out);
  for (u16& low : out.low) low = static_cast<u16>(low << (choice.set.log_q - bits));
}

void add_small(const Small& small, int low_bits, WordsOutput out) {
  for (i64 i = 0; i < out.size(); ++i) {
    const u128 sum = joined(out.high[i], out.low[i], low_bits) +
                     static_cast<u128>(static_cast<__int128>(small[i]));
    out.high[i] = high_of(sum, low_bits);
    out.low[i] = low_of(sum, low_bits);
  }
}

void clear(WordsOutput words) {
  std::ranges::fill(words.high, u64{0});
  std::ranges::fill(words.low, u16{0});
}

KeyOwner::KeyOwner(const RingSet& set, const Digest& digest, crypto::Prg& prg)
    : set_(set),
      digest_(digest),
      prg_(prg),
      ring_(set.n, set.low_bits()),
      answers_(set.n, 0),
      small_(sample_secret(prg, set.n)) {
  secret_ = ring_.transform(small_);
  Small negative = small_;
  for (signed char& x : negative) x = static_cast<signed char>(-x);
  negative_ = ring_.transform(negative);
}

void KeyOwner::write_key(MutableBytes out) {
  Words zero(set_.n);
  clear(zero.output());
  encrypt_words(public_seed(digest_, PublicPart::key, 0), zero.view(), set_.n, out);
}

void KeyOwner::encrypt(i64 first, i64 rows, const ColumnChoice& choice,
                       std::span<const u64> message, MutableBytes out, int threads) {
  const i64 columns = std::ssize(message) / rows, each = upload_bytes(choice, columns);
  expect(columns <= set_.n, "lattice: a ciphertext has up to n coefficients");
  expect(std::ssize(message) == rows * columns && std::ssize(out) == rows * each,
         "lattice: the message does not match the shape");
  const WipedVector<crypto::Block> seeds = seeds_of(rows, prg_);
  in_parallel(rows, 1, threads, [&](i64 begin, i64 count) {
    for (i64 i = begin; i < begin + count; ++i) {
      crypto::Prg errors(seeds[i]);
      encrypt_row(first + i, choice, message.subspan(i * columns, columns), errors,
                  out.subspan(i * each, each));
    }
  });
}

void KeyOwner::encrypt_row(i64 index, const ColumnChoice& choice, std::span<const u64> message,
                           crypto::Prg& errors, MutableBytes out) const {
  const int ring_bits = choice.ring_bits();
  Words words(set_.n);
  clear(words.output());
  // The ring lies at the top of the words.
  for (i64 i = 0; i < std::ssize(message); ++i) words.high[i] = message[i] << (64 - ring_bits);
  const Words c0 = encrypted(public_seed(digest_, PublicPart::upload, index), words.view(), errors);
  write_upload(choice, c0.view().part(0, std::ssize(message)), out);
}

void KeyOwner::encrypt_words(crypto::Block seed, WordsView message, i64 columns, MutableBytes out) {
  const Words c0 = encrypted(seed, message);
  write_words(c0.view().part(0, columns), set_.low_bits(), out);
}

Words KeyOwner::encrypted(crypto::Block seed, WordsView message) {
  return encrypted(seed, message, prg_);
}

Words KeyOwner::encrypted(crypto::Block seed, WordsView message, crypto::Prg& errors) const {
  const int low_bits = set_.low_bits();
  Words a(set_.n), c0(set_.n);
  crypto::Prg uniform(seed);
  sample_uniform(uniform, low_bits, a.output());
  std::ranges::copy(message.high, c0.high.begin());
  std::ranges::copy(message.low, c0.low.begin());
  Small error(set_.n);
  sample_error(errors, error);
  add_small(error, low_bits, c0.output());
  ring_.add_product(ring_.transform(a.view()), negative_, c0.output());
  return c0;
}

void KeyOwner::shares_of(i64 count, const ColumnChoice& choice, Bytes c1, std::span<u64> share,
                         int threads) const {
  const i64 columns = std::ssize(share) / count, half = halves_bytes(choice, 1);
  expect(columns <= set_.n, "lattice: a ciphertext has up to n coefficients");
  if (std::ssize(c1) != count * half)
    throw ProtocolError("lattice: an answer has the wrong length");
  in_parallel(count, 1, threads, [&](i64 first, i64 answers) {
    for (i64 j = first; j < first + answers; ++j) {
      const WipedVector<u64> all = times_key(choice, c1.subspan(j * half, half));
      std::copy_n(all.begin(), columns, share.begin() + j * columns);
    }
  });
}

WipedVector<u64> KeyOwner::times_key(const ColumnChoice& choice, Bytes c1) const {
  Words half(set_.n), product(set_.n);
  clear(half.output());
  clear(product.output());
  read_numbers(c1, choice.answer_bits, half.output().high);
  answers_.add_product(answers_.transform(half.view()), secret_, product.output());
  const int shift = choice.answer_bits - choice.share_bits();
  for (u64& word : product.high) word = word >> shift & low_mask(choice.share_bits());
  return std::move(product.high);
}

void round_shares(const ColumnChoice& choice, WordsView c0, std::span<u64> share) {
  round_down(c0, choice.set, choice.share_bits(), 3, share);
}

void write_rounded(const ColumnChoice& choice, WordsView c1, MutableBytes out) {
  WipedVector<u64> rounded(c1.size());
  round(c1, choice.set, choice.answer_bits, rounded);
  write_numbers(rounded, choice.answer_bits, out);
}

HalvesMaker::HalvesMaker(const ColumnChoice& choice, const Digest& digest, i64 inner,
                         crypto::Block blinding)
    : choice_(choice),
      inner_(inner),
      blinding_(blinding),
      ring_(choice.set.n, choice.set.low_bits()),
      a_(inner * choice.set.n) {
  const i64 n = choice.set.n;
  const int low_bits = choice.set.low_bits();
  Words polynomial(n);
  crypto::Prg key(public_seed(digest, PublicPart::key, 0));
  sample_uniform(key, low_bits, polynomial.output());
  p1_ = ring_.transform(polynomial.view());
  for (i64 k = 0; k < inner; ++k) {
    crypto::Prg uniform(public_seed(digest, PublicPart::upload, k));
    sample_uniform(uniform, low_bits, a_.output().part(k * n, n));
  }
}

void HalvesMaker::write(const WeightRows& weights, MutableBytes out, int threads) const {
  const i64 n = choice_.set.n, each = halves_bytes(choice_, 1);
  const int low_bits = choice_.set.low_bits();
  expect(
      std::ssize(weights.words) == weights.rows * inner_ && std::ssize(out) == weights.rows * each,
      "lattice: the halves' shapes do not fit");
  in_parts(weights, inner_, threads, [&](const WeightRows& part) {
    Words c1(part.rows * n);
    multiply_scalars(part.words, part.rows, inner_, part.largest, a_.view(), n, low_bits,
                     c1.output());
    Small error(n);
    for (i64 i = 0; i < part.rows; ++i) {
      const WordsOutput half = c1.output().part(i * n, n);
      crypto::Prg stream(crypto::kZeroBlock);
      const i64 row = part.first + i;
      const Small u = blinding_of(blinding_, weights.first + row, n, stream);
      sample_error(stream, error);
      ring_.add_product(p1_, ring_.transform(u), half);
      add_small(error, low_bits, half);
      write_rounded(choice_, half, out.subspan(row * each, each));
    }
  });
}

Evaluator::Evaluator(const ColumnChoice& choice, const WeightsShape& shape, i64 columns,
                     crypto::Block blinding, Bytes key)
    : choice_(choice),
      inner_(shape.inner),
      columns_(columns),
      blinding_(blinding),
      ring_(choice.set.n, choice.set.low_bits()),
      c0_(shape.inner * columns) {
  expect(columns >= 0 && columns <= choice.set.n, "lattice: a ciphertext has up to n coefficients");
  Words polynomial(choice.set.n);
  read_words(key, choice.set.low_bits(), polynomial.output());
  p0_ = ring_.transform(polynomial.view());
}

void Evaluator::read_ciphertext(i64 index, Bytes upload) {
  expect(index >= 0 && index < inner_, "lattice: the message has fewer rows");
  read_upload(choice_, upload, c0_.output().part(index * columns_, columns_));
}

void Evaluator::answer(const WeightRows& weights, std::span<u64> share, int threads) const {
  expect(std::ssize(weights.words) == weights.rows * inner_ &&
             std::ssize(share) == weights.rows * columns_,
         "lattice: the answers' shapes do not fit");
  in_parts(weights, inner_, threads, [&](const WeightRows& part) {
    Words sums(part.rows * columns_);
    multiply_scalars(part.words, part.rows, inner_, part.largest, c0_.view(), columns_,
                     choice_.set.low_bits(), sums.output());
    for (i64 i = 0; i < part.rows; ++i) {
      const i64 row = part.first + i;
      finish(weights.first + row, sums.view().part(i * columns_, columns_),
             share.subspan(row * columns_, columns_));
    }
  });
}

void Evaluator::finish(i64 index, WordsView c0, std::span<u64> share) const {
  const i64 n = choice_.set.n;
  crypto::Prg stream(crypto::kZeroBlock);
  const Small u = blinding_of(blinding_, index, n, stream);
  Words whole(n);
  clear(whole.output());
  std::ranges::copy(c0.high, whole.high.begin());
  std::ranges::copy(c0.low, whole.low.begin());
  ring_.add_product(p0_, ring_.transform(u), whole.output());
  round_shares(choice_, whole.view().part(0, columns_), share);
}

}  // namespace privml::lattice
