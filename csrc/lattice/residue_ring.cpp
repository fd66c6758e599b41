// SPDX-License-Identifier: Apache-2.0
#include "lattice/residue_ring.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "base/error.h"
#include "lattice/residue_kernels.h"
#include "lattice/words.h"

namespace privml::lattice {
namespace {

constexpr int kFewestPrimeBits = 20, kMostPrimeBits = 48;
constexpr int kMostHalvings = 13;
constexpr i64 kTile = i64{1} << 14;  // numbers, of which a cache of the second level holds four

using Limbs = std::array<u64, kLimbs>;  // the lowest first

double centred(u64 x, u64 p) {
  return x > p / 2 ? -static_cast<double>(p - x) : static_cast<double>(x);
}

u64 product_modulo(u64 a, u64 b, u64 p) { return static_cast<u64>(u128{a} * b % p); }

Limbs product_of(std::span<const u64> primes) {
  Limbs out{1, 0, 0};
  for (const u64 p : primes) {
    u128 carry = 0;
    for (u64& limb : out) {
      carry += u128{limb} * p;
      limb = static_cast<u64>(carry);
      carry >>= 64;
    }
  }
  return out;
}

// 2^256 / p, rounded down.
std::array<u64, kLimbs + 1> reciprocal(u64 p) {
  std::array<u64, kLimbs + 1> out{};
  u64 rest = 1;
  for (int i = kLimbs; i >= 0; --i) {
    const u128 number = u128{rest} << 64;
    out[i] = static_cast<u64>(number / p);
    rest = static_cast<u64>(number % p);
  }
  return out;
}

// a b modulo 2^192.
Torus low_product(const Limbs& a, Torus b) {
  const u128 low = u128{a[0]} * b.low;
  u128 middle = (low >> 64) + static_cast<u64>(a[0] * b.middle);
  const u128 first = u128{a[0]} * b.middle, second = u128{a[1]} * b.low;
  middle += static_cast<u64>(second);
  const u64 high = static_cast<u64>(middle >> 64) + static_cast<u64>(first >> 64) +
                   static_cast<u64>(second >> 64) + a[0] * b.high + a[1] * b.middle + a[2] * b.low;
  return {high, static_cast<u64>(middle), static_cast<u64>(low)};
}

// y / p for the reciprocal a of p, rounded down to a multiple of 2^-192 and at most one lower.
Torus multiple(u64 y, const std::array<u64, kLimbs + 1>& a) {
  const u64 carry = static_cast<u64>((u128{y} * a[0]) >> 64);
  return low_product({a[1], a[2], a[3]}, {0, 0, y}) + Torus{0, 0, carry};
}

}  // namespace

ResidueRing::ResidueRing(i64 n, std::span<const u64> primes, Backend backend)
    : n_(n),
      primes_(primes.begin(), primes.end()),
      transforms_(&transform_kernels(backend)),
      kernels_(&residue_kernels(backend)) {
  expect(n >= 16 && n <= 8192 && std::has_single_bit(static_cast<u64>(n)),
         "lattice: n must be a power of two from 16 to 8192");
  expect(!primes.empty() && std::ssize(primes) <= kMostModuli, "lattice: one to three primes");
  for (const u64 p : primes)
    expect(std::bit_width(p) >= kFewestPrimeBits && std::bit_width(p) <= kMostPrimeBits &&
               p % (2 * static_cast<u64>(n)) == 1,
           "lattice: primes have 20 to 48 bits, and are 1 modulo 2 n");
  modulus_ = product_of(primes);
  word_multipliers_.resize(kMostHalvings + 1);
  for (const u64 p : primes) {
    roots_.push_back(make_roots(n, p, transforms_->lanes));
    reciprocals_.push_back(reciprocal(p));
    u64 others = 1;
    for (const u64 other : primes)
      if (other != p) others = product_modulo(others, other % p, p);
    const u64 recombined = power_modulo(others, p - 2, p), half = (p + 1) / 2;
    ResidueMultipliers by{};
    by.recombined = multiplier(recombined, p);
    // Of limb i: -2^(64 i - 192), and 2^32 times that.
    for (int i = 0; i < 2 * kLimbs; ++i) {
      const u64 power = power_modulo(half, static_cast<u64>(64 * kLimbs - 32 * i), p);
      by.halves[i] = multiplier(p - power, p);
    }
    torus_multipliers_.push_back(by);
    u64 scale = 1;
    for (auto& of_halvings : word_multipliers_) {
      by.halves[0] = multiplier(scale, p);
      by.halves[1] = multiplier(product_modulo(scale, u64{1} << 32, p), p);
      of_halvings.push_back(by);
      scale = product_modulo(scale, half, p);
    }
  }
}

ResidueRing::~ResidueRing() = default;
ResidueRing::ResidueRing(ResidueRing&&) noexcept = default;

int ResidueRing::prime_bits(int i) const { return std::bit_width(primes_[i]); }

void ResidueRing::transform(std::span<double> a, i64 used) const {
  expect(std::ssize(a) == size() && used >= 1 && used <= n_ &&
             std::has_single_bit(static_cast<u64>(used)),
         "lattice: a polynomial has n residues of each prime");
  for (int i = 0; i < moduli(); ++i) transforms_->forward(roots_[i], n_, used, a.data() + i * n_);
}

void ResidueRing::restore(std::span<double> a) const {
  expect(std::ssize(a) == size(), "lattice: a polynomial has n residues of each prime");
  for (int i = 0; i < moduli(); ++i) transforms_->backward(roots_[i], n_, a.data() + i * n_);
}

Residues ResidueRing::product(const Residues& a, const Residues& b) const {
  Residues out(size());
  for (int i = 0; i < moduli(); ++i)
    transforms_->multiply(roots_[i], n_, a.data() + i * n_, b.data() + i * n_, out.data() + i * n_);
  return out;
}

void ResidueRing::add_products(std::span<const Residues* const> a,
                               std::span<const Residues* const> b, bool fresh,
                               Residues& out) const {
  expect(a.size() == b.size(), "lattice: products have two factors");
  std::vector<const double*> left(a.size()), right(b.size());
  for (int i = 0; i < moduli(); ++i) {
    for (size_t k = 0; k < a.size(); ++k) {
      left[k] = a[k]->data() + i * n_;
      right[k] = b[k]->data() + i * n_;
    }
    kernels_->add_products(roots_[i], n_, left.data(), right.data(), std::ssize(a), fresh,
                           out.data() + i * n_);
  }
}

void ResidueRing::multiply_rows(std::span<const ResiduePair> pairs, std::span<const double> first,
                                i64 used, bool fresh, std::span<ResiduePair> out) const {
  const i64 count = std::ssize(pairs), rows = std::ssize(out), prime = rows * count * used;
  expect(count >= 1 && used >= 16 && used <= n_ && std::has_single_bit(static_cast<u64>(used)) &&
             std::ssize(first) == moduli() * prime,
         "lattice: polynomials' first coefficients stand row by row");
  // Places at a time, so that what is read for every row stays near.
  i64 tile = n_;
  while (tile > used && 2 * count * tile > kTile) tile /= 2;
  WipedVector<double> factors(count * tile);
  std::vector<const double*> left(count), right(count), factor(count);
  for (i64 k = 0; k < count; ++k) factor[k] = factors.data() + k * tile;
  for (int i = 0; i < moduli(); ++i)
    for (i64 place = 0; place < n_; place += tile) {
      const i64 at = i * n_ + place;
      for (i64 k = 0; k < count; ++k) {
        left[k] = pairs[k].c0.data() + at;
        right[k] = pairs[k].c1.data() + at;
      }
      for (i64 row = 0; row < rows; ++row) {
        for (i64 k = 0; k < count; ++k)
          transforms_->forward_part(roots_[i], n_,
                                    first.subspan(i * prime + (row * count + k) * used, used),
                                    place, tile, factors.data() + k * tile);
        kernels_->add_products(roots_[i], tile, left.data(), factor.data(), count, fresh,
                               out[row].c0.data() + at);
        kernels_->add_products(roots_[i], tile, right.data(), factor.data(), count, fresh,
                               out[row].c1.data() + at);
      }
    }
}

void ResidueRing::combine(const Residues& a, const Residues& b, Residues& sum,
                          Residues& difference) const {
  for (int i = 0; i < moduli(); ++i)
    kernels_->combine(roots_[i], n_, a.data() + i * n_, b.data() + i * n_, sum.data() + i * n_,
                      difference.data() + i * n_);
}

Residues ResidueRing::monomial(i64 power) const {
  const i64 place = power & (2 * n_ - 1);
  Residues out(size());
  std::ranges::fill(out, 0.);
  for (int i = 0; i < moduli(); ++i) out[i * n_ + (place & (n_ - 1))] = place < n_ ? 1 : -1;
  transform(out, n_);
  return out;
}

// A place holds the value at a root; that of the image is the value at the root's power.
std::vector<u32> ResidueRing::places(i64 power) const {
  expect(power % 2 == 1, "lattice: only odd powers move places");
  const u64 p = primes_[0];
  Residues roots = monomial(1);
  const auto residue = [&](i64 i) {
    const double x = roots[i];
    return static_cast<u64>(static_cast<i64>(x)) + (x < 0 ? p : 0);
  };
  std::unordered_map<u64, u32> at;
  for (i64 i = 0; i < n_; ++i) at[residue(i)] = static_cast<u32>(i);
  std::vector<u32> out(n_);
  for (i64 i = 0; i < n_; ++i)
    out[i] = at.at(power_modulo(residue(i), static_cast<u64>(power & (2 * n_ - 1)), p));
  return out;
}

void ResidueRing::move(const Residues& a, std::span<const u32> places, Residues& out) const {
  for (int i = 0; i < moduli(); ++i) {
    const double* from = a.data() + i * n_;
    double* to = out.data() + i * n_;
    for (i64 j = 0; j < n_; ++j) to[j] = from[places[j]];
  }
}

void ResidueRing::add_moved(const Residues& a, std::span<const u32> places, Residues& out) const {
  for (int i = 0; i < moduli(); ++i) {
    const double* from = a.data() + i * n_;
    double* to = out.data() + i * n_;
    for (i64 j = 0; j < n_; ++j) to[j] += from[places[j]];
  }
}

Residues ResidueRing::of_small(std::span<const signed char> small) const {
  expect(std::ssize(small) == n_, "lattice: a polynomial has n coefficients");
  Residues out(size());
  std::ranges::fill(out, 0.);
  add_small(small, out);
  return out;
}

void ResidueRing::add_small(std::span<const signed char> small, Residues& out) const {
  for (int i = 0; i < moduli(); ++i)
    for (i64 j = 0; j < n_; ++j) out[i * n_ + j] += small[j];
}

void ResidueRing::words(std::span<const u64> words, int halvings, std::span<double> out) const {
  const i64 count = std::ssize(words);
  expect(count % 8 == 0 && halvings >= 0 && halvings <= kMostHalvings &&
             std::ssize(out) == moduli() * count,
         "lattice: words are eights of coefficients");
  const u64* limb = words.data();
  for (int i = 0; i < moduli(); ++i)
    kernels_->residues(roots_[i], word_multipliers_[halvings][i], count, &limb, 1,
                       out.data() + i * count);
}

Residues ResidueRing::uniform(crypto::Block seed) const {
  Residues out(size());
  crypto::Prg prg(seed);
  std::vector<u64> random(n_);
  for (int i = 0; i < moduli(); ++i)
    // Public numbers: how many are drawn again is no secret.
    for (i64 done = 0; done < n_;) {
      prg.fill_ring(std::span(random).first(n_ - done), prime_bits(i));
      for (const u64 x : std::span(random).first(n_ - done))
        if (x < primes_[i]) out[i * n_ + done++] = centred(x, primes_[i]);
    }
  return out;
}

Residues ResidueRing::of_torus(std::span<const Torus> t) const {
  expect(std::ssize(t) == n_, "lattice: a polynomial has n coefficients");
  WipedVector<u64> rest(kLimbs * n_);
  for (i64 j = 0; j < n_; ++j) {
    const Torus product = low_product(modulus_, t[j]);
    rest[j] = product.low;
    rest[n_ + j] = product.middle;
    rest[2 * n_ + j] = product.high;
  }
  const u64* const limbs[] = {rest.data(), rest.data() + n_, rest.data() + 2 * n_};
  Residues out(size());
  for (int i = 0; i < moduli(); ++i)
    kernels_->residues(roots_[i], torus_multipliers_[i], n_, limbs, kLimbs, out.data() + i * n_);
  return out;
}

TorusVector ResidueRing::to_torus(const Residues& a) const {
  TorusVector out(n_);
  std::ranges::fill(out, Torus{});
  WipedVector<u64> parts(n_);
  for (int i = 0; i < moduli(); ++i) {
    kernels_->recombine(roots_[i], torus_multipliers_[i], n_, a.data() + i * n_, parts.data());
    for (i64 j = 0; j < n_; ++j) out[j] = out[j] + multiple(parts[j], reciprocals_[i]);
  }
  return out;
}

void ResidueRing::digits(const Residues& a, int bits, Residues& first, Residues& second) const {
  for (int i = 0; i < moduli(); ++i)
    expect(bits >= 1 && bits <= 46 && bits < prime_bits(i),
           "lattice: digits are shorter than primes");
  std::vector<ResidueMultipliers> by = torus_multipliers_;
  for (int i = 0; i < moduli(); ++i)
    by[i].digit = multiplier((u64{1} << bits) % primes_[i], primes_[i]);
  kernels_->digits(roots_.data(), by.data(), moduli(), n_, bits, a.data(), first.data(),
                   second.data());
  for (int i = 1; i < moduli(); ++i) {
    std::copy_n(first.begin(), n_, first.begin() + i * n_);
    std::copy_n(second.begin(), n_, second.begin() + i * n_);
  }
}

i64 ResidueRing::bytes() const {
  i64 sum = 0;
  for (int i = 0; i < moduli(); ++i) sum += packed_bytes(n_, prime_bits(i));
  return sum;
}

void ResidueRing::write(const Residues& a, MutableBytes out) const {
  expect(std::ssize(out) == bytes(), "lattice: wrong buffer");
  WipedVector<u64> numbers(n_);
  for (int i = 0; i < moduli(); ++i) {
    const i64 each = packed_bytes(n_, prime_bits(i));
    for (i64 j = 0; j < n_; ++j) {
      const i64 x = static_cast<i64>(a[i * n_ + j]);
      numbers[j] = static_cast<u64>(x + (x >> 63 & static_cast<i64>(primes_[i])));
    }
    write_numbers(numbers, prime_bits(i), out.first(each));
    out = out.subspan(each);
  }
}

Residues ResidueRing::read(Bytes in) const {
  if (std::ssize(in) != bytes()) throw ProtocolError("lattice: a message has the wrong length");
  Residues out(size());
  std::vector<u64> numbers(n_);
  for (int i = 0; i < moduli(); ++i) {
    const i64 each = packed_bytes(n_, prime_bits(i));
    read_numbers(in.first(each), prime_bits(i), numbers);
    in = in.subspan(each);
    for (i64 j = 0; j < n_; ++j) {
      if (numbers[j] >= primes_[i])
        throw ProtocolError("lattice: a residue is not below its prime");
      out[i * n_ + j] = centred(numbers[j], primes_[i]);
    }
  }
  return out;
}

}  // namespace privml::lattice
