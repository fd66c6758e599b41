// SPDX-License-Identifier: Apache-2.0
#include "lattice/packed.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/multiversion.h"
#include "base/pack.h"
#include "lattice/scalar_product.h"
#include "lattice/words.h"

namespace privml::lattice {
namespace {

constexpr i64 kN = kPackedSet.n;
constexpr i64 kPolynomialsAtOnce = 8;  // of weights, whose transforms stay in a second cache
constexpr i64 kColumnsAtOnce = 128;    // of public halves that are multiplied by scalars
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

// out = coefficients from `first` on of X^shift in, 0 <= shift < 2 n.
void shifted(WordsView in, i64 shift, i64 first, WordsOutput out) {
  const bool negative = shift >= kN;
  const i64 by = negative ? shift - kN : shift, count = out.size();
  const i64 turned = std::clamp(by - first, i64{0}, count);  // come from the end, with a sign
  clear(out);
  if (turned > 0) {
    const WordsView tail = in.part(kN - by + first, turned);
    negative ? add(tail, out.part(0, turned)) : subtract(tail, out.part(0, turned));
  }
  if (turned < count) {
    const WordsView head = in.part(first + turned - by, count - turned);
    const WordsOutput rest = out.part(turned, count - turned);
    negative ? subtract(head, rest) : add(head, rest);
  }
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
void extract(const u64* rounded, int bits, int number, double* out) {
  const u64 mask = low_mask(bits);
  const int half = 1 << (bits - 1);
  for (i64 i = 0; i < kN; ++i)
    out[i] = static_cast<double>(static_cast<int>(rounded[i] >> (bits * number) & mask) - half);
}

Words expanded(crypto::Block seed) {
  Words out(kN);
  crypto::Prg uniform(seed);
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

void expect_fits(const PackedChoice& choice, const PackedShape& shape) {
  expect(shape.positions >= 1 && shape.positions * choice.gap() <= kN,
         "lattice: the positions do not fit the polynomials");
  for (const Term& term : shape.terms)
    expect(term.shift >= 0 && term.shift < shape.positions,
           "lattice: a term reaches beyond the positions");
}

// Work of a transform's butterflies and products, and of its end, in products of words.
constexpr i64 kTransformWork = 160'000, kMultipleWork = 30'000;
// log2 of the sum of squares of weights whose sum with uniform words of 72 bits stays below 2^94
// but with probability 2^-180 (Hoeffding).
constexpr double kMostSquares = 38;

i64 polynomials(const PackedChoice& choice, i64 rows) { return ceil_div(rows, choice.gap()); }

// Polynomials that may be summed up before the sum is reduced; 0 if one has too many weights.
i64 exact_sum(const PackedChoice& choice, const PackedShape& shape) {
  std::vector<i64> terms(shape.rows / shape.groups);
  for (const Term& term : shape.terms) ++terms[term.row];
  const i64 most = std::ranges::max(terms) * std::min(choice.gap(), std::ssize(terms));
  const double squares = 2 * std::log2(static_cast<double>(shape.largest)) +
                         std::log2(static_cast<double>(std::max(most, i64{1})));
  return squares > kMostSquares ? 0 : static_cast<i64>(std::exp2(kMostSquares - squares));
}

// What stands between the coefficients that a polynomial of weights takes to one place.
i64 span_of(const PackedChoice& choice, const PackedShape& shape) {
  i64 most = 0;
  for (const Term& term : shape.terms) most = std::max(most, term.shift);
  return (most + 1) * choice.gap() - 1;
}

i64 transformed_work(const PackedChoice& choice, const PackedShape& shape, i64 messages) {
  // A group's first and last polynomials may be shared with others.
  const i64 each = std::min(polynomials(choice, shape.rows / shape.groups) + (shape.groups > 1),
                            polynomials(choice, shape.rows));
  return each * (kTransformWork + messages * kMultipleWork) + messages * kTransformWork;
}

i64 multiplied_work(const PackedShape& shape, i64 messages) {
  return messages * shape.inner() * kN;
}

bool by_transforms(const PackedChoice& choice, const PackedShape& shape, i64 messages) {
  return exact_sum(choice, shape) > 0 &&
         transformed_work(choice, shape, messages) < multiplied_work(shape, messages);
}

// Those of a group's outputs among some, and a call for each group.
template <class Each>
void in_groups(const PackedShape& shape, const WeightRows& weights, Each&& each) {
  const i64 outputs = shape.outputs / shape.groups, inner = shape.inner();
  for (i64 row = 0; row < weights.rows;) {
    const i64 output = weights.first + row, group = output / outputs;
    const i64 count = std::min(weights.rows - row, (group + 1) * outputs - output);
    each(group, row,
         WeightRows{weights.words.subspan(row * inner, count * inner), output, count,
                    weights.largest});
    row += count;
  }
}

}  // namespace

i64 reversed(i64 i, int levels) {
  i64 out = 0;
  for (int level = 0; level < levels; ++level) out = 2 * out + (i >> level & 1);
  return out;
}

i64 switching_bytes(const SwitchingSet& set) {
  return (1 + set.digits_in_all()) * key_bytes(kPackedSet);
}

PackedShape matrix_product(i64 rows, i64 inner, i64 outputs, u64 largest) {
  PackedShape shape{inner, rows, outputs, 1, largest, {}, {}};
  for (i64 k = 0; k < inner; ++k) shape.terms.push_back({k, 0});
  for (i64 p = 0; p < rows; ++p) shape.places.push_back(p);
  return shape;
}

i64 packed_upload_bytes(const PackedChoice& choice, const PackedShape& shape) {
  return upload_bytes(choice.columns, shape.rows * shape.positions);
}

i64 packed_answer_bytes(const PackedChoice& choice) { return halves_bytes(choice.columns, 1); }

i64 c1_work(const PackedChoice& choice, const PackedShape& shape, i64 messages) {
  return by_transforms(choice, shape, messages) ? transformed_work(choice, shape, messages)
                                                : multiplied_work(shape, messages);
}

i64 switched_digits(const SwitchingSet& set, int levels, i64 outputs) {
  i64 images = 0;
  for (int level = 0; level < levels; ++level) {
    // Level l packs what 2^(levels - l) outputs have become.
    images += set.times(level) * ceil_div(outputs, i64{1} << (levels - level));
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

void write_packed(KeyOwner& key, const Digest& digest, const PackedChoice& choice,
                  const PackedShape& shape, MessageNumber number, std::span<const u64> message,
                  MutableBytes out) {
  expect_fits(choice, shape);
  const auto& [product, index] = number;
  const i64 gap = choice.gap(), positions = shape.positions;
  const i64 blocks = polynomials(choice, shape.rows);
  expect(std::ssize(message) == shape.rows * positions, "lattice: the message has another shape");
  const int ring_bits = choice.columns.ring_bits();
  const int shift = 64 - ring_bits - choice.levels;
  const u64 mask = low_mask(ring_bits);
  Words words(kN), used(shape.rows * positions);
  for (i64 block = 0; block < blocks; ++block) {
    clear(words.output());
    const i64 first = block * gap, count = std::min(gap, shape.rows - first);
    for (i64 k = 0; k < count; ++k)
      for (i64 p = 0; p < positions; ++p)
        words.high[p * gap + k] = (message[(first + k) * positions + p] & mask) << shift;
    const Words c0 = key.encrypted(
        public_seed(digest, PublicPart::upload, upload_index(product, index * blocks + block)),
        words.view());
    for (i64 k = 0; k < count; ++k)
      for (i64 p = 0; p < positions; ++p) {
        used.high[(first + k) * positions + p] = c0.high[p * gap + k];
        used.low[(first + k) * positions + p] = c0.low[p * gap + k];
      }
  }
  write_upload(choice.columns, used.view(), out);
}

void read_packed(const KeyOwner& key, const PackedChoice& choice, const PackedShape& shape,
                 Bytes answer, std::span<u64> share) {
  const i64 count = shape.count(), outputs = std::ssize(share) / count;
  if (std::ssize(answer) != packed_answer_bytes(choice))
    throw ProtocolError("lattice: an answer has the wrong length");
  const WipedVector<u64> all = key.times_key(choice.columns, answer);
  for (i64 o = 0; o < outputs; ++o)
    for (i64 i = 0; i < count; ++i)
      share[o * count + i] = all[shape.places[i] * choice.gap() + reversed(o, choice.levels)];
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

void SwitchingKeys::add_image(int level, WordsView a0, WordsView a1, WordsOutput c0, WordsOutput c1,
                              Space& space) const {
  const int kept = set_.serving(level), times = set_.times(level);
  Words b0(times > 1 ? kN : 0), b1(times > 1 ? kN : 0);
  for (int i = 1; i < times; ++i) {
    Words next0(kN), next1(kN);
    clear(next0.output());
    clear(next1.output());
    add_switched(kept, a0, a1, next0.output(), next1.output(), space);
    std::swap(b0, next0);
    std::swap(b1, next1);
    a0 = b0.view();
    a1 = b1.view();
  }
  add_switched(kept, a0, a1, c0, c1, space);
}

void SwitchingKeys::add_switched(int level, WordsView a0, WordsView a1, WordsOutput c0,
                                 WordsOutput c1, Space& space) const {
  add(image(a0, level).view(), c0);
  const Words other = image(a1, level);
  round_to_digits(other.high.data(), other.low.data(), unused_bits(set_), halves(set_),
                  space.rounded.data());
  space.digits.resize(set_.digits);
  std::vector<const Transformed*> digits, keys(set_.digits);
  for (int i = 0; i < set_.digits; ++i) {
    extract(space.rounded.data(), set_.digit_bits, i, space.digit.data());
    ring_.transform(space.digit, space.digits[i]);
    digits.push_back(&space.digits[i]);
  }
  const auto add_products = [&](const std::vector<Transformed>& all, WordsOutput out) {
    const i64 first = switching_index(set_, level, 0);
    for (int i = 0; i < set_.digits; ++i) keys[i] = &all[first + i];
    ring_.multiply_add(keys, digits, space.sum);
    ring_.add(space.sum, out);
  };
  add_products(c0_, c0);
  add_products(c1_, c1);
}

PackedEvaluator::PackedEvaluator(const SwitchingKeys& keys, const PackedChoice& choice,
                                 const PackedShape& shape, MessageNumber first, Bytes uploads)
    : keys_(keys),
      choice_(choice),
      shape_(shape),
      messages_(std::ssize(uploads) / packed_upload_bytes(choice, shape)),
      c0_(messages_ * shape.rows * shape.positions) {
  expect_fits(choice, shape);
  const i64 each = packed_upload_bytes(choice, shape), rows = shape.rows * shape.positions;
  if (messages_ < 1 || std::ssize(uploads) != messages_ * each)
    throw ProtocolError("lattice: an upload has the wrong length");
  const i64 blocks = polynomials(choice, shape.rows);
  const bool transforms = by_transforms(choice, shape, messages_);
  for (i64 i = 0; i < messages_; ++i) {
    read_upload(choice.columns, uploads.subspan(i * each, each), c0_.output().part(i * rows, rows));
    for (i64 block = 0; block < blocks; ++block) {
      const i64 index = upload_index(first.product, (first.message + i) * blocks + block);
      Words a = expanded(public_seed(keys.digest(), PublicPart::upload, index));
      if (transforms) {
        Words moved(kN);
        shifted(a.view(), (2 * kN - span_of(choice, shape)) % (2 * kN), 0, moved.output());
        transformed_.push_back(keys.ring().transform(moved.view()));
      } else {
        c1_.push_back(std::move(a));
      }
    }
  }
}

void PackedEvaluator::answer(const WeightRows& weights, crypto::Prg& prg, MutableBytes out,
                             std::span<u64> share) const {
  const i64 gap = choice_.gap(), count = shape_.count();
  expect(weights.first % gap == 0 && std::ssize(weights.words) == weights.rows * shape_.inner() &&
             std::ssize(share) == messages_ * weights.rows * count,
         "lattice: the answers' shapes do not fit");
  std::vector<Words> c0, c1;
  SwitchingKeys::Space space;
  for (i64 i = 0; i < messages_; ++i) {
    sum_at_places(weights, i, c0.emplace_back(weights.rows * count).output());
    c1.emplace_back(weights.rows * kN);
  }
  if (transformed_.empty()) {
    for (i64 i = 0; i < messages_; ++i) multiply_publics(weights, i, c1[i].output());
  } else {
    for (Words& sums : c1) clear(sums.output());
    add_transformed(weights, c1);
  }
  for (i64 first = 0; first < weights.rows; first += gap) {
    const i64 outputs = std::min(gap, weights.rows - first);
    const i64 bytes = packed_answer_bytes(choice_);
    for (i64 i = 0; i < messages_; ++i) {
      std::vector<Ciphertext> parts;
      for (i64 o = first; o < first + outputs; ++o) {
        Ciphertext& one = parts.emplace_back(Words(kN), Words(kN));
        clear(one.c0.output());
        for (i64 p = 0; p < count; ++p) {
          one.c0.high[shape_.places[p] * gap] = c0[i].high[o * count + p];
          one.c0.low[shape_.places[p] * gap] = c0[i].low[o * count + p];
        }
        copy(c1[i].view().part(o * kN, kN), one.c1.output());
      }
      finish(pack(parts, 0, 1, space), outputs, prg, out.first(bytes),
             share.first(outputs * count));
      out = out.subspan(bytes);
      share = share.subspan(outputs * count);
    }
  }
  expect(out.empty(), "lattice: the answers' shapes do not fit");
}

// c0 of outputs, at their places.
void PackedEvaluator::sum_at_places(const WeightRows& weights, i64 message, WordsOutput c0) const {
  const i64 count = shape_.count(), inner = shape_.inner(), positions = shape_.positions;
  const i64 rows = shape_.rows / shape_.groups;
  Words met(inner * count);
  in_groups(shape_, weights, [&](i64 group, i64 row, const WeightRows& part) {
    for (i64 t = 0; t < inner; ++t) {
      const auto [from, shift] = shape_.terms[t];
      const i64 start = (message * shape_.rows + group * rows + from) * positions + shift;
      for (i64 p = 0; p < count; ++p) {
        met.high[t * count + p] = c0_.high[start + shape_.places[p]];
        met.low[t * count + p] = c0_.low[start + shape_.places[p]];
      }
    }
    multiply_scalars(part.words, part.rows, inner, part.largest, met.view(), count, kLowBits,
                     c0.part(row * count, part.rows * count));
  });
}

// c1 of outputs. Weights times X^span have low powers alone, so that the first layers of their
// transforms copy.
void PackedEvaluator::add_transformed(const WeightRows& weights, std::span<Words> c1) const {
  const NegacyclicRing& ring = keys_.ring();
  const i64 gap = choice_.gap(), blocks = polynomials(choice_, shape_.rows);
  const i64 rows = shape_.rows / shape_.groups, inner = shape_.inner();
  const i64 most = exact_sum(choice_, shape_), together = std::min(most, kPolynomialsAtOnce);
  const i64 span = span_of(choice_, shape_);
  const i64 used = static_cast<i64>(std::bit_ceil(static_cast<u64>(span + 1)));
  std::vector<Transformed> factors(together), sums(messages_);
  std::vector<const Transformed*> by, ciphertexts;
  const auto finish_sums = [&](i64 output) {
    for (i64 i = 0; i < messages_; ++i) ring.add(sums[i], c1[i].output().part(output * kN, kN));
  };
  in_groups(shape_, weights, [&](i64 group, i64 row, const WeightRows& part) {
    const i64 first = group * rows / gap, last = ceil_div((group + 1) * rows, gap);
    WipedVector<double> polynomials((last - first) * used);
    for (i64 o = 0; o < part.rows; ++o) {
      std::ranges::fill(polynomials, 0.0);
      for (i64 t = 0; t < inner; ++t) {
        const i64 from = group * rows + shape_.terms[t].row;
        const i64 power = span - from % gap - shape_.terms[t].shift * gap;
        polynomials[(from / gap - first) * used + power] +=
            static_cast<double>(static_cast<i64>(part.words[o * inner + t]));
      }
      i64 summed = 0;
      for (i64 block = first; block < last; block += together) {
        const i64 count = std::min(together, last - block);
        if (summed + count > most) {
          finish_sums(row + o);
          summed = 0;
        }
        summed += count;
        by.clear();
        for (i64 k = 0; k < count; ++k) {
          ring.transform(std::span(polynomials).subspan((block + k - first) * used, used),
                         factors[k]);
          by.push_back(&factors[k]);
        }
        for (i64 i = 0; i < messages_; ++i) {
          ciphertexts.clear();
          for (i64 k = 0; k < count; ++k)
            ciphertexts.push_back(&transformed_[i * blocks + block + k]);
          ring.multiply_add(ciphertexts, by, sums[i]);
        }
      }
      finish_sums(row + o);
    }
  });
}

// Some columns at a time: all of them at once would be large fresh memory for each product.
void PackedEvaluator::multiply_publics(const WeightRows& weights, i64 message,
                                       WordsOutput c1) const {
  const i64 inner = shape_.inner();
  Words moved(inner * kColumnsAtOnce);
  in_groups(shape_, weights, [&](i64 group, i64 row, const WeightRows& part) {
    const ScalarWeights scalars(part.words, part.rows, inner, part.largest, kLowBits);
    for (i64 first = 0; first < kN; first += kColumnsAtOnce) {
      move_publics(message, group, first, moved.output());
      scalars.multiply(moved.view(), kColumnsAtOnce,
                       c1.part(row * kN + first, (part.rows - 1) * kN + kColumnsAtOnce), kN);
    }
  });
}

// The halves c1 that the weights of a group meet, shifted to where they meet them: kColumnsAtOnce
// coefficients of each, from `first` on.
void PackedEvaluator::move_publics(i64 message, i64 group, i64 first, WordsOutput moved) const {
  const i64 gap = choice_.gap(), blocks = polynomials(choice_, shape_.rows);
  const i64 rows = shape_.rows / shape_.groups, inner = shape_.inner();
  for (i64 t = 0; t < inner; ++t) {
    const i64 from = group * rows + shape_.terms[t].row;
    const i64 by = from % gap + shape_.terms[t].shift * gap;
    shifted(c1_[message * blocks + from / gap].view(), (2 * kN - by) % (2 * kN), first,
            moved.part(t * kColumnsAtOnce, kColumnsAtOnce));
  }
}

void PackedEvaluator::finish(Ciphertext packed, i64 outputs, crypto::Prg& prg, MutableBytes out,
                             std::span<u64> share) const {
  const Small u = sample_secret(prg, kN, kN);
  Small error(kN);
  sample_error(prg, error);
  const Transformed blinding = keys_.ring().transform(u);
  keys_.ring().add_product(keys_.p0(), blinding, packed.c0.output());
  keys_.ring().add_product(keys_.p1(), blinding, packed.c1.output());
  add_small(error, kLowBits, packed.c1.output());
  const i64 count = shape_.count(), gap = choice_.gap();
  Words wanted(outputs * count);
  for (i64 o = 0; o < outputs; ++o)
    for (i64 p = 0; p < count; ++p) {
      const i64 place = shape_.places[p] * gap + reversed(o, choice_.levels);
      wanted.high[o * count + p] = packed.c0.high[place];
      wanted.low[o * count + p] = packed.c0.low[place];
    }
  round_shares(choice_.columns, wanted.view(), share);
  write_rounded(choice_.columns, packed.c1.view(), out);
}

// The outputs at `place`, place + stride, ... in one, at multiples of stride: those at twice the
// stride first.
PackedEvaluator::Ciphertext PackedEvaluator::pack(std::span<Ciphertext> outputs, i64 place,
                                                  i64 stride, SwitchingKeys::Space& space) const {
  if (stride == choice_.gap()) return std::move(outputs[reversed(place, choice_.levels)]);
  Ciphertext sum = pack(outputs, place, 2 * stride, space);
  Ciphertext difference = sum;
  if (reversed(place + stride, choice_.levels) < std::ssize(outputs)) {
    const Ciphertext odd = pack(outputs, place + stride, 2 * stride, space);
    Words moved(kN);
    const auto combine = [&](const Words& half, Words& plus, Words& minus) {
      shifted(half.view(), stride, 0, moved.output());
      add(moved.view(), plus.output());
      subtract(moved.view(), minus.output());
    };
    combine(odd.c0, sum.c0, difference.c0);
    combine(odd.c1, sum.c1, difference.c1);
  }
  keys_.add_image(std::countr_zero(static_cast<u64>(stride)), difference.c0.view(),
                  difference.c1.view(), sum.c0.output(), sum.c1.output(), space);
  return sum;
}

}  // namespace privml::lattice
