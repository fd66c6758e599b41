// SPDX-License-Identifier: Apache-2.0
#include "lattice/slot_product.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace privml::lattice {
namespace {

constexpr double kLargestCoefficient = 0.51;  // of a transform's results, over the prime

// In [0, p) and back, for numbers below p in absolute value.
u64 word_of(double x, u64 p) {
  const i64 y = static_cast<i64>(x);
  return static_cast<u64>(y + (y >> 63 & static_cast<i64>(p)));
}

double residue_of(u64 x, u64 p) {
  const i64 above = -static_cast<i64>(x > p / 2);
  return static_cast<double>(static_cast<i64>(x) - (above & static_cast<i64>(p)));
}

// Below `limit`, of t times that.
u64 scaled(Torus t, u64 limit) {
  const u128 low = u128{t.low} * limit;
  const u128 middle = u128{t.middle} * limit + static_cast<u64>(low >> 64);
  const u128 high = u128{t.high} * limit + static_cast<u64>(middle >> 64);
  return static_cast<u64>(high >> 64);
}

// 3/2 of 1 / (2 p), rounded down to a multiple of 2^-128.
Torus offset_of(u64 p) {
  const u128 words = (u128{3} << 126) / p;
  return {static_cast<u64>(words >> 64), static_cast<u64>(words), 0};
}

u64 prime_of(const WideChoice& choice) { return choice.set.primes[0]; }

// q / t modulo t at every place.
Residues unit_of(const WideChoice& choice, const Slots& slots) {
  u64 product = 1;
  for (const u64 p : choice.set.used().subspan(1))
    product = static_cast<u64>(u128{product} * p % prime_of(choice));
  return slots.placed(std::vector<u64>(slots.n(), product));
}

}  // namespace

WideChoice choose_slots(const SlotSet& set, int prime) {
  expect(prime >= 0 && prime < kMostSlotPrimes, "lattice: the set has no such prime");
  const WideSet modulus{set.ring, 3, {set.messages[prime], set.others[0], set.others[1]}, 0};
  const int bits = set.message_bits();
  const double largest = kLargestCoefficient * std::exp2(bits);
  const double squares = static_cast<double>(set.ring.n) * largest * largest;
  const auto choice = choose_wide(modulus, {bits, squares});
  expect(choice.has_value(), "lattice: the set does not serve");
  return *choice;
}

i64 slot_key_bytes(const WideChoice& choice) {
  i64 sum = 0;
  for (const u64 p : choice.set.used()) sum += packed_bytes(choice.set.ring.n, std::bit_width(p));
  return sum;
}

i64 slot_upload_bytes(const WideChoice& choice) {
  return torus_bytes(choice.set.ring.n, choice.upload_bits);
}

i64 slot_answer_bytes(const WideChoice& choice) {
  return torus_bytes(choice.set.ring.n, choice.answer_bits);
}

WipedVector<u64> slot_shares(std::span<const Torus> shares, u64 prime, bool first) {
  const Torus added = first ? offset_of(prime) : Torus{};
  WipedVector<u64> out(shares.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = scaled(shares[i] + added, 2 * prime);
  return out;
}

Slots::Slots(i64 n, u64 prime) : prime_(prime), ring_(n, std::span(&prime, 1)), order_(n) {
  const Residues monomial = ring_.monomial(1);  // each place's root
  std::iota(order_.begin(), order_.end(), 0);
  std::ranges::sort(order_, {}, [&](u32 place) { return word_of(monomial[place], prime); });
}

Residues Slots::placed(std::span<const u64> values) const {
  expect(std::ssize(values) <= n(), "lattice: a polynomial has n slots");
  Residues out(n());
  std::ranges::fill(out, 0.);
  for (size_t i = 0; i < values.size(); ++i) out[order_[i]] = residue_of(values[i], prime_);
  return out;
}

WipedVector<u64> Slots::coefficients(Residues placed) const {
  ring_.restore(placed);
  WipedVector<u64> out(n());
  for (i64 i = 0; i < n(); ++i) out[i] = static_cast<u64>(static_cast<i64>(placed[i]));
  return out;
}

void Slots::values(std::span<u64> numbers) const {
  expect(std::ssize(numbers) == n(), "lattice: a polynomial has n coefficients");
  Residues residues(n());
  for (i64 i = 0; i < n(); ++i) residues[i] = residue_of(numbers[i], prime_);
  ring_.transform(residues, n());
  for (i64 i = 0; i < n(); ++i) numbers[i] = word_of(residues[order_[i]], prime_);
}

SlotKeyOwner::SlotKeyOwner(const WideChoice& choice, const Digest& digest, crypto::Prg& prg)
    : choice_(choice),
      digest_(digest),
      prg_(prg),
      key_(choice.set, prg),
      slots_(choice.set.ring.n, prime_of(choice)),
      unit_(unit_of(choice, slots_)) {}

void SlotKeyOwner::write_key(MutableBytes out) {
  key_.ring.write(key_.encryption(public_seed(digest_, PublicPart::key, 0), prg_), out);
}

void SlotKeyOwner::write_upload(i64 number, std::span<const u64> x, MutableBytes out) {
  expect(std::ssize(out) == slot_upload_bytes(choice_), "lattice: wrong buffer");
  Residues message = slots_.product(slots_.placed(x), unit_);  // zero modulo the other primes
  message.resize(key_.ring.size());
  std::fill(message.begin() + slots_.n(), message.end(), 0.);
  TorusVector c0 = key_.ring.to_torus(
      key_.encryption(public_seed(digest_, PublicPart::upload, number), prg_, message));
  for (Torus& value : c0) value = rounded(value, choice_.upload_bits);
  write_torus(c0, choice_.upload_bits, out);
}

TorusVector SlotKeyOwner::read_answer(Bytes answer) const {
  if (std::ssize(answer) != slot_answer_bytes(choice_))
    throw ProtocolError("lattice: an answer has the wrong length");
  TorusVector c1(choice_.set.ring.n);
  read_torus(answer, choice_.answer_bits, c1);
  return key_.times_secret(c1);
}

SlotEvaluator::SlotEvaluator(const WideChoice& choice, const Digest& digest, Bytes key,
                             crypto::Prg& prg)
    : choice_(choice),
      digest_(digest),
      prg_(prg),
      ring_(choice.set.ring.n, choice.set.used()),
      key_{transformed(ring_, ring_.read(key)),
           transformed(ring_, ring_.uniform(public_seed(digest, PublicPart::key, 0)))},
      slots_(choice.set.ring.n, prime_of(choice)) {}

TorusVector SlotEvaluator::answer(i64 number, Bytes upload, std::span<const u64> y,
                                  MutableBytes out) {
  const i64 n = ring_.n();
  if (std::ssize(upload) != slot_upload_bytes(choice_))
    throw ProtocolError("lattice: an upload has the wrong length");
  expect(std::ssize(out) == slot_answer_bytes(choice_), "lattice: wrong buffer");
  TorusVector half(n);
  read_torus(upload, choice_.upload_bits, half);
  Residues factor(ring_.size());
  ring_.words(slots_.coefficients(slots_.placed(y)), 0, factor);
  ring_.transform(factor, n);
  const Residues a = ring_.uniform(public_seed(digest_, PublicPart::upload, number));
  ResiduePair product{ring_.product(transformed(ring_, ring_.of_torus(half)), factor),
                      ring_.product(transformed(ring_, a), factor)};
  blind(ring_, key_, Blinding(prg_, n), product);
  half = ring_.to_torus(product.c1);
  for (Torus& value : half) value = rounded(value, choice_.answer_bits);
  write_torus(half, choice_.answer_bits, out);
  return ring_.to_torus(product.c0);
}

}  // namespace privml::lattice
