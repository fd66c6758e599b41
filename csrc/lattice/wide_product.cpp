// SPDX-License-Identifier: Apache-2.0
#include "lattice/wide_product.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/multiversion.h"
#include "base/parallel.h"

namespace privml::lattice {
namespace {

constexpr i64 kMostSumsAtOnce = 16;             // for which ciphertexts are read once
constexpr i64 kMostWordsAtOnce = i64{1} << 19;  // of y, as residues
constexpr i64 kFewestWords = 16;
// Of y: as many as a cache line has words, which are of several columns; and how far ahead they are
// fetched.
constexpr i64 kRowsAtOnce = 8, kRowsAhead = 16;

i64 power_of(i64 n, int level) { return (n >> level) + 1; }

// The level of packing whose images make those of an upload with that bit in their number.
int level_of(const WideShape& shape, int bit) { return shape.levels - shape.upload_levels + bit; }

// The power to which an image takes X, modulo 2 n: those of the keys that serve its levels, as
// often as these are applied.
i64 power_of_image(const WideShape& shape, SwitchingLevels keys, i64 image) {
  i64 power = 1;
  for (int bit = 0; bit < shape.upload_levels; ++bit) {
    if ((image >> bit & 1) == 0) continue;
    const int level = level_of(shape, bit);
    for (int i = 0; i < keys.times(level); ++i)
      power = power * power_of(shape.n, keys.serving(level)) & (2 * shape.n - 1);
  }
  return power;
}

// That of an odd number modulo 2 n.
i64 inverse(i64 odd, i64 n) {
  u64 out = 1;
  const u64 x = static_cast<u64>(odd);
  for (int correct = 1; correct < 64; correct *= 2) out *= 2 - x * out;
  return static_cast<i64>(out) & (2 * n - 1);
}

// Both have as many words; the sign is 0 or all ones, which negates.
PRIVML_TARGET_CLONES
void add_and_subtract(const u64* moved, u64 sign, i64 count, u64* sum, u64* difference) {
  for (i64 i = 0; i < count; ++i) {
    const u64 even = sum[i], odd = (moved[i] ^ sign) - sign;
    sum[i] = even + odd;
    difference[i] = even - odd;
  }
}

// even + X^shift odd and even - X^shift odd in place, 0 <= shift < 2 n.
void join(std::span<u64> even, std::span<u64> odd, i64 shift, std::span<u64> copy) {
  const i64 n = std::ssize(even), by = shift & (n - 1);
  const u64 sign = shift < n ? 0 : ~u64{0};
  std::ranges::copy(odd, copy.begin());
  add_and_subtract(&copy[0], sign, n - by, &even[by], &odd[by]);
  if (by > 0) add_and_subtract(&copy[n - by], ~sign, by, &even[0], &odd[0]);
}

// A polynomial's image under X -> X^power.
PRIVML_TARGET_CLONES
void take_image(const u64* words, i64 n, i64 power, u64* image) {
  // The place of X^i comes from that of X^(i / power).
  const i64 back = inverse(power, n);
  for (i64 i = 0; i < n; ++i) {
    const i64 from = i * back & (2 * n - 1);
    const u64 sign = u64{0} - static_cast<u64>(from >= n);
    image[i] = (words[from & (n - 1)] ^ sign) - sign;
  }
}

i64 switching_index(int level, int digit) { return level * kWideDigits + digit; }

// Calls polynomial(index, product, part, block) for all of them.
template <class Polynomial>
void in_polynomials(const WideShape& shape, Polynomial&& polynomial) {
  i64 index = 0;
  for (i64 product = 0; product < shape.batch; ++product)
    for (i64 part = 0; part < shape.parts(); ++part)
      for (i64 block = 0; block < shape.blocks(); ++block)
        polynomial(index++, product, part, block);
}

i64 polynomial_bytes(const WideChoice& choice, const WideShape& shape, i64 part, i64 block) {
  return torus_bytes(shape.slots_of(part) * shape.width_of(block), choice.upload_bits);
}

// What stands in an output: columns first and following ones, of a part of the rows of a product.
struct Output {
  i64 product, part, first, columns;
};

Output output_of(const WideShape& shape, i64 number) {
  const i64 groups = shape.column_groups(), whole = number / groups;
  const i64 first = number % groups * shape.columns_at_once();
  return {whole / shape.parts(), whole % shape.parts(), first,
          std::min(shape.columns_at_once(), shape.columns - first)};
}

// Calls place(coefficient, entry) for the entries of the outputs that an answer holds.
template <class Place>
void in_places(const WideShape& shape, i64 answer, Place&& place) {
  const i64 gap = shape.gap(), first = answer * gap, sums = shape.sums(answer);
  for (i64 number = 0; number < shape.outputs_of(answer); ++number) {
    const Output output = output_of(shape, first + number);
    const i64 i = number / sums * shape.made() + shape.place(number % sums);
    for (i64 row = 0; row < shape.rows_of(output.part); ++row) {
      const i64 at = output.product * shape.rows + output.part * shape.rows_at_once() + row;
      for (i64 column = 0; column < output.columns; ++column)
        place((row * shape.columns_at_once() + column) * gap + i,
              at * shape.columns + output.first + column);
    }
  }
}

void add(const Residues& a, Residues& out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] += a[i];
}

void expect_fits(const WideChoice& choice, const WideShape& shape) {
  expect(shape.n == choice.set.ring.n && shape.batch >= 1 && shape.rows >= 1 && shape.inner >= 1 &&
             shape.columns >= 1 && shape.levels >= 0 && shape.column_levels >= 0 &&
             shape.rows_at_once() >= 1,
         "lattice: the product does not fit the polynomials");
  expect(shape.upload_levels >= 0 && shape.upload_levels <= shape.levels &&
             choice.ring_bits + shape.upload_levels <= 64 &&
             (shape.upload_levels == 0 || shape.batch * shape.parts() == 1),
         "lattice: images of uploads are for one part of rows");
}

}  // namespace

i64 WideShape::place(i64 sum) const { return reversed(sum, levels - upload_levels); }

i64 WideShape::factor_words() const {
  if (upload_levels > 0) return n;
  const i64 length = (std::min(columns_at_once(), columns) - 1) * gap() + width_of(0);
  return std::max(kFewestWords, static_cast<i64>(std::bit_ceil(static_cast<u64>(length))));
}

i64 WideShape::sent() const {
  return batch * ((parts() - 1) * slots_of(0) + slots_of(parts() - 1)) * inner;
}

i64 wide_upload_bytes(const WideChoice& choice, const WideShape& shape) {
  const i64 last = shape.parts() - 1;
  return shape.batch *
         (last * wide_part_bytes(choice, shape, 0) + wide_part_bytes(choice, shape, last));
}

i64 wide_part_bytes(const WideChoice& choice, const WideShape& shape, i64 part) {
  const i64 last = shape.blocks() - 1;
  return last * polynomial_bytes(choice, shape, part, 0) +
         polynomial_bytes(choice, shape, part, last);
}

i64 wide_answer_bytes(const WideChoice& choice) {
  return torus_bytes(choice.set.ring.n, choice.answer_bits);
}

i64 wide_key_bytes(const WideSet& set) {
  return set.moduli * packed_bytes(set.ring.n, set.ring.log_q / set.moduli);
}

i64 wide_switching_bytes(const WideSet& set) { return kWideDigits * wide_key_bytes(set); }

void round_shares(int ring_bits, bool adds, std::span<const Torus> shares, std::span<u64> high,
                  std::span<u8> last) {
  expect(ring_bits >= 1 && ring_bits <= 64 && high.size() == shares.size() &&
             last.size() == shares.size(),
         "lattice: shares are rounded to 2 to 65 bits, as many as there are");
  const Torus added = adds ? power_of_half(ring_bits + 1) + power_of_half(ring_bits + 2) : Torus{};
  for (size_t i = 0; i < shares.size(); ++i) {
    const Torus sum = shares[i] + added;
    const u64 below = ring_bits == 64 ? sum.middle >> 63 : sum.high >> (63 - ring_bits);
    high[i] = sum.high >> (64 - ring_bits);
    last[i] = static_cast<u8>(below & 1);
  }
}

WideKeyOwner::WideKeyOwner(const WideSet& set, const Digest& digest, crypto::Prg& prg)
    : set_(set), digest_(digest), prg_(prg), key_(set, prg) {}

void WideKeyOwner::write_key(MutableBytes out) {
  const Residues p0 = key_.encryption(public_seed(digest_, PublicPart::key, 0), prg_);
  key_.ring.write(p0, out);
}

void WideKeyOwner::write_switching(int level, MutableBytes out) {
  const ResidueRing& ring = key_.ring;
  const i64 n = ring.n(), each = ring.bytes();
  expect(std::ssize(out) == kWideDigits * each, "lattice: wrong buffer");
  for (int digit = 0; digit < kWideDigits; ++digit) {
    // The key's image in units of the digit.
    const Torus unit = power_of_half((digit + 1) * set_.digit_bits);
    TorusVector image(n);
    for (i64 i = 0; i < n; ++i) {
      const i64 at = i * power_of(n, level) & (2 * n - 1);
      const i64 value = at >= n ? -key_.small[i] : key_.small[i];
      const u64 positive = u64{0} - static_cast<u64>(value > 0);
      const u64 negative = u64{0} - static_cast<u64>(value < 0);
      const Torus below = -unit;
      image[at & (n - 1)] = {(unit.high & positive) | (below.high & negative),
                             (unit.middle & positive) | (below.middle & negative),
                             (unit.low & positive) | (below.low & negative)};
    }
    const u64 index = switching_index(level, digit);
    Residues key = key_.encryption(public_seed(digest_, PublicPart::switching, index), prg_);
    add(ring.of_torus(image), key);
    ring.reduce(key);
    ring.write(key, out.subspan(digit * each, each));
  }
}

void WideKeyOwner::write_upload(const WideChoice& choice, const WideShape& shape, i64 first,
                                std::span<const u64> x, MutableBytes out) {
  expect_fits(choice, shape);
  expect(std::ssize(x) == shape.batch * shape.rows * shape.inner &&
             std::ssize(out) == wide_upload_bytes(choice, shape),
         "lattice: the message does not match the shape");
  const i64 gap = shape.gap();
  const int message_bits = choice.ring_bits + shape.upload_levels;
  i64 written = 0;
  in_polynomials(shape, [&](i64 index, i64 product, i64 part, i64 block) {
    const crypto::Block seed = public_seed(digest_, PublicPart::upload, first + index);
    const TorusVector c0 = key_.ring.to_torus(key_.encryption(seed, prg_));
    const i64 slots = shape.slots_of(part), width = shape.width_of(block);
    TorusVector sent(slots * width);
    for (i64 i = 0; i < slots; ++i) {
      const i64 slot = shape.slot(i), row = slot / shape.columns_at_once();
      const i64 at = product * shape.rows + part * shape.rows_at_once() + row;
      const bool empty = slot % shape.columns_at_once() != 0 || row >= shape.rows_of(part);
      for (i64 k = 0; k < width; ++k) {
        Torus value = c0[slot * gap + k];
        if (!empty) value = value + torus_of(x[at * shape.inner + block * gap + k], message_bits);
        sent[i * width + k] = rounded(value, choice.upload_bits);
      }
    }
    const i64 bytes = polynomial_bytes(choice, shape, part, block);
    write_torus(sent, choice.upload_bits, out.subspan(written, bytes));
    written += bytes;
  });
}

void WideKeyOwner::add_answers(const WideChoice& choice, const WideShape& shape, i64 first,
                               Bytes answers, std::span<Torus> sums) const {
  const i64 each = wide_answer_bytes(choice), count = std::ssize(answers) / each;
  expect_fits(choice, shape);
  if (count * each != std::ssize(answers))
    throw ProtocolError("lattice: an answer has the wrong length");
  expect(first >= 0 && first + count <= shape.answers() &&
             std::ssize(sums) == shape.batch * shape.rows * shape.columns,
         "lattice: the answers do not match the shape");
  TorusVector half(key_.ring.n());
  for (i64 i = 0; i < count; ++i) {
    read_torus(answers.subspan(i * each, each), choice.answer_bits, half);
    const TorusVector share = key_.times_secret(half);
    in_places(shape, first + i,
              [&](i64 at, i64 output) { sums[output] = sums[output] + share[at]; });
  }
}

WideKeys::WideKeys(const WideSet& set, const Digest& digest, Bytes key)
    : set_(set),
      digest_(digest),
      ring_(set.ring.n, set.used()),
      key_{transformed(ring_, ring_.read(key)),
           transformed(ring_, ring_.uniform(public_seed(digest, PublicPart::key, 0)))},
      levels_(kMostWideLevels) {}

void WideKeys::add_level(int level, Bytes keys) {
  expect(level >= 0 && level < kMostWideLevels && (kept_.kept >> level & 1) == 0,
         "lattice: keys of a level come once");
  const i64 each = ring_.bytes();
  if (std::ssize(keys) != kWideDigits * each)
    throw ProtocolError("lattice: keys have the wrong length");
  Level added{ring_.places(power_of(ring_.n(), level)), {}, {}};
  for (int digit = 0; digit < kWideDigits; ++digit) {
    added.k0.push_back(transformed(ring_, ring_.read(keys.subspan(digit * each, each))));
    const crypto::Block seed =
        public_seed(digest_, PublicPart::switching, switching_index(level, digit));
    added.k1.push_back(transformed(ring_, ring_.uniform(seed)));
  }
  levels_[level] = std::move(added);
  kept_.kept |= 1U << level;
}

void WideKeys::add_image(int level, Ciphertext& from, Ciphertext& to) const {
  expect(kept_.kept >> level != 0, "lattice: keys of this level are missing");
  const Level& keys = levels_[kept_.serving(level)];
  const Residues *const k0[] = {&keys.k0[0], &keys.k0[1]}, *const k1[] = {&keys.k1[0], &keys.k1[1]};
  Residues moved(ring_.size()), first(ring_.size()), second(ring_.size());
  const Residues* const digits[] = {&first, &second};
  for (int left = kept_.times(level) - 1; left >= 0; --left) {
    ring_.move(from.c1, keys.places, moved);
    ring_.restore(moved);
    ring_.digits(moved, set_.digit_bits, first, second);
    ring_.transform(first, ring_.n());
    ring_.transform(second, ring_.n());
    if (left == 0) {
      ring_.add_moved(from.c0, keys.places, to.c0);
      ring_.add_products(digits, k0, false, to.c0);
      ring_.add_products(digits, k1, false, to.c1);
    } else {
      ring_.move(from.c0, keys.places, moved);
      std::swap(from.c0, moved);
      ring_.add_products(digits, k0, false, from.c0);
      ring_.add_products(digits, k1, true, from.c1);
    }
  }
}

WideEvaluator::WideEvaluator(const WideKeys& keys, const WideChoice& choice, const WideShape& shape,
                             i64 first, crypto::Prg& prg, int threads)
    : keys_(keys), choice_(choice), shape_(shape), prg_(prg), first_(first), threads_(threads) {
  expect_fits(choice, shape);
  for (int level = 0; level < shape.levels; ++level)
    monomials_.push_back(keys.ring().monomial(i64{1} << level));
}

void WideEvaluator::read_part(Bytes upload) {
  const i64 part = read_ % shape_.parts(), gap = shape_.gap(), blocks = shape_.blocks();
  expect(read_ < shape_.batch * shape_.parts(), "lattice: the message has fewer parts");
  if (std::ssize(upload) != wide_part_bytes(choice_, shape_, part))
    throw ProtocolError("lattice: an upload has the wrong length");
  const ResidueRing& ring = keys_.ring();
  i64 at = 0, width = 0;
  Residues shift;
  TorusVector c0(ring.n());
  std::vector<Ciphertext> ciphertexts;
  for (i64 block = 0; block < blocks; ++block) {
    const i64 bytes = polynomial_bytes(choice_, shape_, part, block);
    if (width != shape_.width_of(block)) {
      width = shape_.width_of(block);
      shift = ring.monomial(1 - width);
    }
    TorusVector sent(shape_.slots_of(part) * width);
    read_torus(upload.subspan(at, bytes), choice_.upload_bits, sent);
    at += bytes;
    std::ranges::fill(c0, Torus{});
    for (i64 i = 0; i < shape_.slots_of(part); ++i)
      std::copy_n(sent.begin() + i * width, width, c0.begin() + shape_.slot(i) * gap);
    const crypto::Block seed =
        public_seed(keys_.digest(), PublicPart::upload, first_ + read_ * blocks + block);
    ciphertexts.push_back({ring.product(transformed(ring, ring.of_torus(c0)), shift),
                           ring.product(transformed(ring, ring.uniform(seed)), shift)});
  }
  // An image with the lowest level last is that of one without it.
  ciphertexts.resize(shape_.images() * blocks);
  for (int bit = shape_.upload_levels - 1; bit >= 0; --bit)
    for (i64 image = 0; image < shape_.images(); image += i64{2} << bit)
      for (i64 block = 0; block < blocks; ++block) {
        Ciphertext from = ciphertexts[image * blocks + block];
        Ciphertext& to = ciphertexts[(image + (i64{1} << bit)) * blocks + block];
        to = {Residues(ring.size()), Residues(ring.size())};
        std::ranges::fill(to.c0, 0.);
        std::ranges::fill(to.c1, 0.);
        keys_.add_image(level_of(shape_, bit), from, to);
      }
  parts_[read_++] = std::move(ciphertexts);
}

i64 WideEvaluator::parts_for(i64 answer) const {
  const i64 last = std::min((answer + 1) * shape_.gap(), shape_.outputs()) - 1;
  return last / shape_.column_groups() + 1;
}

i64 WideEvaluator::sums_at_once() const {
  const i64 each = shape_.images() * shape_.blocks() * shape_.factor_words();
  i64 sums = std::min(shape_.made(), kMostSumsAtOnce);
  while (sums > 1 && sums * each > kMostWordsAtOnce) sums /= 2;
  return sums;
}

// Columns of y in polynomials, those of an output in one, for all blocks; zeros for outputs that
// there are not.
void WideEvaluator::write_factors(i64 whole, std::span<const i64> outputs, const WideFactor& y,
                                  std::span<u64> words) const {
  const i64 blocks = shape_.blocks(), gap = shape_.gap(), used = shape_.factor_words();
  const i64 step = std::min(kRowsAtOnce, gap);
  const auto [row_stride, column_stride] = std::pair{y.matrices.row, y.matrices.column};
  const u64* const own = y.matrices.matrix(whole / shape_.parts());
  std::ranges::fill(words, 0);
  for (i64 i = 0; i < std::ssize(outputs); ++i) {
    if (outputs[i] >= shape_.outputs()) continue;
    const Output output = output_of(shape_, outputs[i]);
    for (i64 k = 0; k < shape_.inner; k += step) {
      const i64 block = k / gap, rows = std::min(step, shape_.inner - k);
      const i64 place = (i * blocks + block) * used + shape_.width_of(block) - 1 - k % gap;
      const u64* const from = own + k * row_stride + output.first * column_stride;
      for (i64 row = 0; row < std::min(step, shape_.inner - k - kRowsAhead); ++row)
        __builtin_prefetch(from + (row + kRowsAhead) * row_stride);
      for (i64 column = 0; column < output.columns; ++column)
        for (i64 row = 0; row < rows; ++row)
          words[place + column * gap - row] =
              y.format(from[row * row_stride + column * column_stride]);
    }
  }
}

// Factors of outputs that are joined, `count` polynomials each, to those of the images of uploads.
void WideEvaluator::join_factors(i64 count, std::span<u64> words) const {
  const i64 n = shape_.n, images = shape_.images();
  WipedVector<u64> copy(n);
  const auto factor = [&](i64 image, i64 i) { return words.subspan((image * count + i) * n, n); };
  for (int bit = shape_.upload_levels - 1; bit >= 0; --bit)
    for (i64 image = 0; image < images; ++image) {
      if (image >> bit & 1) continue;
      const i64 above = image >> bit << bit;
      const i64 back = inverse(power_of_image(shape_, keys_.kept(), above), n);
      const i64 shift = (back << level_of(shape_, bit)) & (2 * n - 1);
      for (i64 i = 0; i < count; ++i)
        join(factor(image, i), factor(image + (i64{1} << bit), i), shift, copy);
    }
  for (i64 image = 1; image < images; ++image)
    for (i64 i = 0; i < count; ++i) {
      const auto one = factor(image, i);
      std::ranges::copy(one, copy.begin());
      take_image(copy.data(), n, power_of_image(shape_, keys_.kept(), image), one.data());
    }
}

void WideEvaluator::make(i64 first, i64 count, const WideFactor& y, Sums& sums) const {
  const ResidueRing& ring = keys_.ring();
  const i64 blocks = shape_.blocks(), groups = shape_.column_groups(), images = shape_.images();
  const i64 used = shape_.factor_words(), begin = sums.answer * shape_.gap();
  sums.first = first;
  sums.made.resize(count);
  for (Ciphertext& sum : sums.made) {
    sum.c0.resize(ring.size());
    sum.c1.resize(ring.size());
  }
  std::vector<i64> outputs;
  for (i64 done = 0, next; done < count; done = next) {
    const i64 output = begin + first + done, whole = output / groups;
    next = std::min(done + (whole + 1) * groups - output, count);
    outputs.clear();
    for (i64 image = 0; image < images; ++image)
      for (i64 i = done; i < next; ++i) outputs.push_back(begin + first + i + image * sums.count);
    const i64 each = (next - done) * blocks * used;
    sums.words.resize(images * each);
    sums.residues.resize(ring.moduli() * each);
    const std::span<u64> words = sums.words;
    write_factors(whole, outputs, y, words);
    join_factors((next - done) * blocks, words);
    for (i64 image = 0; image < images; ++image) {
      ring.words(words.subspan(image * each, each), shape_.levels - shape_.upload_levels,
                 sums.residues);
      ring.multiply_rows(std::span(parts_.at(whole)).subspan(image * blocks, blocks), sums.residues,
                         used, image == 0, std::span(sums.made).subspan(done, next - done));
    }
  }
}

// The sums at `place`, place + stride, ... in one, at multiples of stride: those at twice the
// stride first.
WideEvaluator::Ciphertext WideEvaluator::pack(i64 place, i64 stride, const WideFactor& y,
                                              Sums& sums) const {
  const i64 first = shape_.place(place);  // reversed once more: the number of the sum there
  const i64 together = shape_.made() / stride;
  if (together == sums_at_once()) make(first, std::min(together, sums.count - first), y, sums);
  if (together == 1) return std::move(sums.made[first - sums.first]);
  const ResidueRing& ring = keys_.ring();
  const int level = std::countr_zero(static_cast<u64>(stride));
  Ciphertext sum = pack(place, 2 * stride, y, sums);
  if (shape_.place(place + stride) >= sums.count) {
    Ciphertext even = sum;
    keys_.add_image(level, even, sum);
    return sum;
  }
  const Ciphertext odd = pack(place + stride, 2 * stride, y, sums);
  Ciphertext difference{Residues(ring.size()), Residues(ring.size())};
  ring.combine(odd.c0, monomials_[level], sum.c0, difference.c0);
  ring.combine(odd.c1, monomials_[level], sum.c1, difference.c1);
  keys_.add_image(level, difference, sum);
  return sum;
}

void WideEvaluator::answer(i64 first, const WideFactor& y, MutableBytes out,
                           std::span<Torus> sums) {
  const i64 each = wide_answer_bytes(choice_), count = std::ssize(out) / each;
  expect(first >= 0 && count >= 1 && count * each == std::ssize(out) &&
             first + count <= shape_.answers() && parts_for(first + count - 1) <= read_ &&
             y.matrices.words != nullptr &&
             std::ssize(sums) == shape_.batch * shape_.rows * shape_.columns,
         "lattice: the answers' shapes do not fit");
  std::vector<Blinding> blindings;
  for (i64 i = 0; i < count; ++i) blindings.emplace_back(prg_, shape_.n);
  in_parallel(count, 1, threads_, [&](i64 from, i64 number) {
    for (i64 i = from; i < from + number; ++i)
      answer_one(first + i, y, blindings[i], out.subspan(i * each, each), sums);
  });
  const i64 next = (first + count) * shape_.gap();
  parts_.erase(parts_.begin(), parts_.lower_bound(next / shape_.column_groups()));
}

void WideEvaluator::answer_one(i64 number, const WideFactor& y, const Blinding& blinding,
                               MutableBytes out, std::span<Torus> sums) const {
  const ResidueRing& ring = keys_.ring();
  Sums made{number, shape_.sums(number), 0, {}, {}, {}};
  Ciphertext answer = pack(0, 1, y, made);
  blind(ring, keys_.key(), blinding, answer);
  TorusVector half = ring.to_torus(answer.c1);
  for (Torus& x : half) x = rounded(x, choice_.answer_bits);
  write_torus(half, choice_.answer_bits, out);
  const TorusVector share = ring.to_torus(answer.c0);
  in_places(shape_, number, [&](i64 at, i64 output) { sums[output] = sums[output] + share[at]; });
}

}  // namespace privml::lattice
