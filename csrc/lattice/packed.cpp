// SPDX-License-Identifier: Apache-2.0
#include "lattice/packed.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/multiversion.h"
#include "base/pack.h"
#include "lattice/scalar_product.h"
#include "lattice/wire.h"

namespace privml::lattice {
namespace {

constexpr i64 kN = kPackedSet.n;
constexpr int kLowBits = kPackedSet.low_bits();

PRIVML_TARGET_CLONES
void add_words(const u64* high, const u16* low, i64 count, u64* out_high, u16* out_low) {
  for (i64 i = 0; i < count; ++i) {
    const u64 sum = u64{out_low[i]} + low[i];
    out_high[i] += high[i] + (sum >> kLowBits);
    out_low[i] = static_cast<u16>(sum & low_mask(kLowBits));
  }
}
PRIVML_TARGET_CLONES
void subtract_words(const u64* high, const u16* low, i64 count, u64* out_high, u16* out_low) {
  for (i64 i = 0; i < count; ++i) {
    const u64 difference = (u64{1} << kLowBits) + out_low[i] - low[i];
    out_high[i] += (difference >> kLowBits) - high[i] - 1;
    out_low[i] = static_cast<u16>(difference & low_mask(kLowBits));
  }
}

void add(WordsView in, WordsOutput out) {
  add_words(in.high.data(), in.low.data(), in.size(), out.high.data(), out.low.data());
}
void subtract(WordsView in, WordsOutput out) {
  subtract_words(in.high.data(), in.low.data(), in.size(), out.high.data(), out.low.data());
}

void copy(WordsView in, WordsOutput out) {
  std::ranges::copy(in.high, out.high.begin());
  std::ranges::copy(in.low, out.low.begin());
}

// out = X^shift in, 0 <= shift < 2 n.
void shifted(WordsView in, i64 shift, WordsOutput out) {
  const bool negative = shift >= kN;
  const i64 by = negative ? shift - kN : shift;
  clear(out);
  const WordsView head = in.part(0, kN - by), tail = in.part(kN - by, by);
  negative ? subtract(head, out.part(by, kN - by)) : add(head, out.part(by, kN - by));
  negative ? add(tail, out.part(0, by)) : subtract(tail, out.part(0, by));
}

// The place of X^i under X -> X^power modulo X^n + 1: below n, or n more where the sign changes.
i64 place(i64 i, i64 power) { return i * power & (2 * kN - 1); }

i64 power_of(int level) { return (kN >> level) + 1; }

Words image(WordsView in, int level) {
  Words out(kN);
  const i64 power = power_of(level);
  i64 at = 0;
  for (i64 i = 0; i < kN; ++i, at = (at + power) & (2 * kN - 1)) {
    const u64 flip = u64{0} - static_cast<u64>(at >= kN), low = in.low[i];
    // The negative is the complement plus one, which carries where the low bits are zero.
    const u64 sum = ((low ^ flip) & low_mask(kLowBits)) + (flip & 1);
    out.high[at & (kN - 1)] = (in.high[i] ^ flip) + (sum >> kLowBits);
    out.low[at & (kN - 1)] = static_cast<u16>(sum & low_mask(kLowBits));
  }
  return out;
}

// Half of the largest digit, in every digit.
u64 halves(const SwitchingSet& set) {
  u64 out = 0;
  for (int i = 0; i < set.digits; ++i) out |= u64{1} << (set.digit_bits * (i + 1) - 1);
  return out;
}

// Words rounded to as many high bits as all digits have, plus halves(), so that digits less half
// of the largest are balanced.
PRIVML_TARGET_CLONES
void round_to_digits(const u64* high, const u16* low, int unused, u64 halves, u64* out) {
  if (unused == 0) {
    for (i64 i = 0; i < kN; ++i) out[i] = high[i] + (u64{low[i]} >> (kLowBits - 1)) + halves;
    return;
  }
  const u64 half = u64{1} << (unused - 1);
  for (i64 i = 0; i < kN; ++i) out[i] = ((high[i] + half) >> unused) + halves;
}

PRIVML_TARGET_CLONES
void extract(const u64* rounded, int bits, int number, std::int16_t* out) {
  const u64 mask = low_mask(bits);
  const int half = 1 << (bits - 1);
  for (i64 i = 0; i < kN; ++i)
    out[i] =
        static_cast<std::int16_t>(static_cast<int>(rounded[i] >> (bits * number) & mask) - half);
}

Words expanded(Block seed) {
  Words out(kN);
  Prg uniform(seed);
  sample_uniform(uniform, kLowBits, out.output());
  return out;
}

// Of a digit of the key of a level that is kept.
i64 switching_index(const SwitchingSet& set, int level, int digit) {
  return set.number(level) * set.digits + digit;
}

int unused_bits(const SwitchingSet& set) { return 64 - set.digits * set.digit_bits; }

// Of a key's ciphertext: all products' are apart.
i64 upload_index(i64 product, i64 index) { return product << 32 | index; }

i64 used(const PackedChoice& choice, i64 rows) { return rows * choice.gap(); }

void expect_fits(const PackedChoice& choice, i64 rows) {
  expect(rows >= 1 && used(choice, rows) <= kN, "lattice: the rows do not fit the polynomials");
}

}  // namespace

i64 switching_bytes(const SwitchingSet& set) {
  return (1 + set.digits_in_all()) * key_bytes(kPackedSet);
}

i64 packed_upload_bytes(const PackedChoice& choice, i64 rows, i64 inner) {
  return ceil_div(inner, choice.gap()) * words_bytes(used(choice, rows), kLowBits);
}

i64 packed_answer_bytes(const PackedChoice& choice, i64 rows) {
  const int bits = choice.columns.answer_bits;
  return packed_bytes(used(choice, rows), bits) + packed_bytes(kN, bits);
}

i64 switched_digits(const SwitchingSet& set, int levels, i64 outputs) {
  i64 images = 0;
  for (int level = 0; level < levels; ++level) {
    // Level l of a full group has 2^l images; of a part those whose outputs are there.
    const i64 stride = i64{1} << level, last = outputs % (i64{1} << levels);
    images += set.times(level) * (outputs >> levels) * stride;
    images += set.times(level) * std::min(last, stride);
  }
  return images * set.digits;
}

void write_switching_keys(KeyOwner& key, const Digest& digest, const SwitchingSet& set,
                          MutableBytes out) {
  const i64 each = key_bytes(kPackedSet);
  expect(std::ssize(out) == switching_bytes(set), "lattice: wrong buffer");
  key.write_key(out.first(each));
  for (int level = 0; level < set.levels; ++level) {
    if (set.serving(level) != level) continue;
    for (int digit = 0; digit < set.digits; ++digit) {
      Words message(kN);
      clear(message.output());
      for (i64 i = 0; i < kN; ++i) {
        const i64 at = place(i, power_of(level));
        const u64 value = static_cast<u64>(static_cast<i64>(key.secret()[i]))
                          << (unused_bits(set) + set.digit_bits * digit);
        message.high[at & (kN - 1)] = at >= kN ? u64{0} - value : value;
      }
      const i64 index = switching_index(set, level, digit);
      key.encrypt_words(public_seed(digest, PublicPart::switching, index), message.view(), kN,
                        out.subspan((1 + index) * each, each));
    }
  }
}

void write_packed(KeyOwner& key, const Digest& digest, const PackedChoice& choice, i64 product,
                  std::span<const u64> message, i64 rows, MutableBytes out) {
  expect_fits(choice, rows);
  const i64 inner = std::ssize(message) / rows, gap = choice.gap();
  const i64 each = words_bytes(used(choice, rows), kLowBits);
  expect(std::ssize(out) == packed_upload_bytes(choice, rows, inner), "lattice: wrong buffer");
  const int shift = 64 - (choice.columns.answer_bits - choice.columns.dropped) - choice.levels;
  const u64 mask = low_mask(choice.columns.answer_bits - choice.columns.dropped);
  for (i64 block = 0; block * gap < inner; ++block) {
    Words words(kN);
    clear(words.output());
    for (i64 m = 0; m < rows; ++m)
      for (i64 k = 0; k < std::min(gap, inner - block * gap); ++k)
        words.high[m * gap + k] = (message[m * inner + block * gap + k] & mask) << shift;
    key.encrypt_words(public_seed(digest, PublicPart::upload, upload_index(product, block)),
                      words.view(), used(choice, rows), out.subspan(block * each, each));
  }
}

void read_packed(const KeyOwner& key, const PackedChoice& choice, i64 rows, Bytes answer,
                 std::span<u64> share) {
  const int bits = choice.columns.answer_bits;
  if (std::ssize(answer) != packed_answer_bytes(choice, rows))
    throw ProtocolError("lattice: an answer has the wrong length");
  const i64 first = packed_bytes(used(choice, rows), bits);
  key.decrypt(bits, answer.first(first), answer.subspan(first), share);
}

SwitchingKeys::SwitchingKeys(const Digest& digest, const SwitchingSet& set, Bytes keys)
    : digest_(digest), set_(set), ring_(kN, kLowBits) {
  if (std::ssize(keys) != switching_bytes(set))
    throw ProtocolError("lattice: keys have the wrong length");
  const i64 each = key_bytes(kPackedSet);
  Words words(kN);
  read_words(keys.first(each), kLowBits, words.output());
  p0_ = ring_.transform(words.view());
  p1_ = ring_.transform(expanded(public_seed(digest, PublicPart::key, 0)).view());
  for (i64 index = 0; index < set.digits_in_all(); ++index) {
    read_words(keys.subspan((1 + index) * each, each), kLowBits, words.output());
    c0_.push_back(ring_.transform(words.view()));
    c1_.push_back(
        ring_.transform(expanded(public_seed(digest, PublicPart::switching, index)).view()));
  }
}

void SwitchingKeys::add_image(int level, WordsView a0, WordsView a1, WordsOutput c0,
                              WordsOutput c1) const {
  const int kept = set_.serving(level), times = set_.times(level);
  Words b0(times > 1 ? kN : 0), b1(times > 1 ? kN : 0);
  for (int i = 1; i < times; ++i) {
    Words next0(kN), next1(kN);
    clear(next0.output());
    clear(next1.output());
    add_switched(kept, a0, a1, next0.output(), next1.output());
    std::swap(b0, next0);
    std::swap(b1, next1);
    a0 = b0.view();
    a1 = b1.view();
  }
  add_switched(kept, a0, a1, c0, c1);
}

void SwitchingKeys::add_switched(int level, WordsView a0, WordsView a1, WordsOutput c0,
                                 WordsOutput c1) const {
  add(image(a0, level).view(), c0);
  const Words other = image(a1, level);
  std::vector<Transformed> digits;
  WipedVector<u64> rounded(kN);
  WipedVector<std::int16_t> digit(kN);
  round_to_digits(other.high.data(), other.low.data(), unused_bits(set_), halves(set_),
                  rounded.data());
  for (int i = 0; i < set_.digits; ++i) {
    extract(rounded.data(), set_.digit_bits, i, digit.data());
    digits.push_back(ring_.transform(digit));
  }
  const auto of_level = [&](const std::vector<Transformed>& keys) {
    return std::span(keys).subspan(switching_index(set_, level, 0), set_.digits);
  };
  ring_.add_products(of_level(c0_), digits, c0);
  ring_.add_products(of_level(c1_), digits, c1);
}

PackedEvaluator::PackedEvaluator(const SwitchingKeys& keys, const PackedChoice& choice, i64 product,
                                 i64 rows, i64 inner, Bytes upload, Prg& prg)
    : keys_(keys),
      choice_(choice),
      rows_(rows),
      inner_(inner),
      prg_(prg),
      c0_(inner * rows),
      c1_(inner * kN) {
  expect_fits(choice, rows);
  if (std::ssize(upload) != packed_upload_bytes(choice, rows, inner))
    throw ProtocolError("lattice: an upload has the wrong length");
  const i64 gap = choice.gap(), each = words_bytes(used(choice, rows), kLowBits);
  Words c0(used(choice, rows));
  for (i64 block = 0; block * gap < inner; ++block) {
    read_words(upload.subspan(block * each, each), kLowBits, c0.output());
    const Words a =
        expanded(public_seed(keys.digest(), PublicPart::upload, upload_index(product, block)));
    for (i64 k = 0; k < std::min(gap, inner - block * gap); ++k) {
      const i64 row = block * gap + k;
      // X^-k times the ciphertext; of c0 what lies at multiples of the gap.
      for (i64 m = 0; m < rows; ++m) {
        c0_.high[row * rows + m] = c0.high[m * gap + k];
        c0_.low[row * rows + m] = c0.low[m * gap + k];
      }
      shifted(a.view(), (2 * kN - k) % (2 * kN), c1_.output().part(row * kN, kN));
    }
  }
}

void PackedEvaluator::answer(const WeightRows& weights, MutableBytes out,
                             std::span<u64> share) const {
  const i64 gap = choice_.gap(), count = weights.rows, groups = ceil_div(count, gap);
  const i64 bytes = packed_answer_bytes(choice_, rows_), each = used(choice_, rows_);
  expect(std::ssize(weights.words) == count * inner_ && std::ssize(out) == groups * bytes &&
             std::ssize(share) == groups * each,
         "lattice: the answers' shapes do not fit");
  Words c0(count * rows_), c1(count * kN);
  multiply_scalars(weights.words, count, inner_, weights.largest, c0_.view(), rows_, kLowBits,
                   c0.output());
  multiply_scalars(weights.words, count, inner_, weights.largest, c1_.view(), kN, kLowBits,
                   c1.output());
  for (i64 group = 0; group < groups; ++group) {
    std::vector<Ciphertext> outputs;
    for (i64 i = group * gap; i < std::min(count, (group + 1) * gap); ++i) {
      Ciphertext& one = outputs.emplace_back(Words(kN), Words(kN));
      clear(one.c0.output());
      for (i64 m = 0; m < rows_; ++m) {
        one.c0.high[m * gap] = c0.high[i * rows_ + m];
        one.c0.low[m * gap] = c0.low[i * rows_ + m];
      }
      copy(c1.view().part(i * kN, kN), one.c1.output());
    }
    finish(pack(outputs, 0, 1), out.subspan(group * bytes, bytes),
           share.subspan(group * each, each));
  }
}

void PackedEvaluator::finish(Ciphertext packed, MutableBytes out, std::span<u64> share) const {
  Small u(kN), error(kN);
  sample_ternary(prg_, u);
  sample_error(prg_, error);
  const Transformed blinding = keys_.ring().transform(u);
  keys_.ring().add_product(keys_.p0(), blinding, packed.c0.output());
  keys_.ring().add_product(keys_.p1(), blinding, packed.c1.output());
  add_small(error, kLowBits, packed.c1.output());
  const i64 first = packed_bytes(std::ssize(share), choice_.columns.answer_bits);
  write_masked(choice_.columns, packed.c0.view().part(0, std::ssize(share)), prg_, out.first(first),
               share);
  write_rounded(choice_.columns, packed.c1.view(), out.subspan(first));
}

// Outputs first, first + stride, ... in one, at multiples of stride: those at twice the stride
// first.
PackedEvaluator::Ciphertext PackedEvaluator::pack(std::span<Ciphertext> outputs, i64 first,
                                                  i64 stride) const {
  if (stride == choice_.gap()) return std::move(outputs[first]);
  Ciphertext sum = pack(outputs, first, 2 * stride);
  Ciphertext difference = sum;
  if (first + stride < std::ssize(outputs)) {
    const Ciphertext odd = pack(outputs, first + stride, 2 * stride);
    Words moved(kN);
    const auto combine = [&](const Words& half, Words& plus, Words& minus) {
      shifted(half.view(), stride, moved.output());
      add(moved.view(), plus.output());
      subtract(moved.view(), minus.output());
    };
    combine(odd.c0, sum.c0, difference.c0);
    combine(odd.c1, sum.c1, difference.c1);
  }
  keys_.add_image(std::countr_zero(static_cast<u64>(stride)), difference.c0.view(),
                  difference.c1.view(), sum.c0.output(), sum.c1.output());
  return sum;
}

}  // namespace privml::lattice
