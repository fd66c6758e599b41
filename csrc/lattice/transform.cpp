// SPDX-License-Identifier: Apache-2.0
#include "lattice/transform.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/error.h"
#include "lattice/residue_loops.h"

namespace privml::lattice {
namespace {

// Without fused multiply-adds: the difference of two products is small, so that it is exact modulo
// 2^64.
struct Integers : ShortWords<1> {
  using Reals = Lanes<1>::Reals;
  static Reals multiply_add(Reals x, Reals y, Reals z) { return x * y + z; }
  static Reals rounded_product(Reals x, Reals y) { return (x * y + kRound) - kRound; }
  static Reals remainder(Reals x, Reals y, Reals q, double p) {
    const auto word = [](double z) { return static_cast<u64>(static_cast<i64>(z)); };
    const u64 difference = word(x[0]) * word(y[0]) - word(q[0]) * word(p);
    return Reals{} + static_cast<double>(static_cast<i64>(difference));
  }
};

u64 product(u64 a, u64 b, u64 p) { return static_cast<u64>(u128{a} * b % p); }

// A primitive root of unity of the given order, a power of two.
u64 root_of_unity(u64 order, u64 p) {
  for (u64 base = 2;; ++base) {
    const u64 root = power_modulo(base, (p - 1) / order, p);
    if (power_modulo(root, order / 2, p) == p - 1) return root;
  }
}

i64 reversed(i64 i, int bits) {
  i64 out = 0;
  for (int bit = 0; bit < bits; ++bit) out |= (i >> bit & 1) << (bits - 1 - bit);
  return out;
}

// The places, within 2 lanes neighbours, of the numbers that a layer's first factors have: as
// exchange() moves them.
void follow_exchange(std::vector<i64>& u, std::vector<i64>& v, i64 step) {
  for (i64 lane = 0; lane < std::ssize(u); ++lane)
    if (lane & step) std::swap(u[lane], v[lane ^ step]);
}

// The roots of the layers with neighbours of t >= lanes, by layer; then for each 2 lanes numbers
// those of the other layers, which are met in this order forward and in the reverse one backward.
void lay_out(const std::vector<u64>& table, u64 p, i64 lanes, bool backward,
             AlignedVector<double>& values, AlignedVector<double>& quotients) {
  const i64 n = std::ssize(table);
  const auto append = [&](u64 root) {
    const Multiplier m = multiplier(root, p);
    values.push_back(m.value);
    quotients.push_back(m.quotient);
  };
  for (i64 i = 0; i < n / lanes; ++i) append(table[i]);
  std::vector<std::vector<i64>> layers;  // places of the first factors, forward
  std::vector<i64> u(lanes), v(lanes);
  for (i64 lane = 0; lane < lanes; ++lane) {
    u[lane] = lane;
    v[lane] = lanes + lane;
  }
  for (i64 step = lanes / 2; step >= 1; step /= 2) {
    follow_exchange(u, v, step);
    layers.push_back(u);
  }
  for (i64 first = 0; first < n; first += 2 * lanes) {
    for (i64 layer = 0; layer < std::ssize(layers); ++layer) {
      const i64 which = backward ? std::ssize(layers) - 1 - layer : layer;
      const i64 t = lanes / 2 >> which;
      for (const i64 place : layers[which]) append(table[n / (2 * t) + (first + place) / (2 * t)]);
    }
  }
}

}  // namespace

u64 power_modulo(u64 base, u64 exponent, u64 p) {
  u64 result = 1;
  for (; exponent != 0; exponent >>= 1, base = product(base, base, p))
    if (exponent & 1) result = product(result, base, p);
  return result;
}

Multiplier multiplier(u64 value, u64 p) {
  const double centred =
      value > p / 2 ? -static_cast<double>(p - value) : static_cast<double>(value);
  return {centred, centred / static_cast<double>(p)};
}

Roots make_roots(i64 n, u64 p, i64 lanes) {
  const u64 root = root_of_unity(2 * static_cast<u64>(n), p),
            inverse = power_modulo(root, p - 2, p);
  const int bits = std::countr_zero(static_cast<u64>(n));
  std::vector<u64> forward(n), backward(n);
  u64 x = 1, y = 1;
  for (i64 i = 0; i < n; ++i) {
    forward[reversed(i, bits)] = x;
    backward[reversed(i, bits)] = y;
    x = product(x, root, p);
    y = product(y, inverse, p);
  }
  Roots roots;
  roots.prime = static_cast<double>(p);
  roots.inverse = 1 / roots.prime;
  lay_out(forward, p, lanes, false, roots.forward, roots.forward_quotient);
  lay_out(backward, p, lanes, true, roots.backward, roots.backward_quotient);
  const u64 of_degree = power_modulo(static_cast<u64>(n), p - 2, p);
  roots.of_degree = multiplier(of_degree, p);
  roots.last = multiplier(product(of_degree, backward[1], p), p);
  return roots;
}

const TransformKernels& transform_kernels(Backend backend) {
  expect(backend_supported(backend), "this processor does not support the backend");
#if defined(__x86_64__)
  if (backend == Backend::avx512) return avx512_transform();
  if (backend == Backend::avx2) return avx2_transform();
#endif
  return portable_transform();
}

const ResidueKernels& residue_kernels(Backend backend) {
  expect(backend_supported(backend), "this processor does not support the backend");
#if defined(__x86_64__)
  if (backend == Backend::avx512) return avx512_residues();
  if (backend == Backend::avx2) return avx2_residues();
#endif
  return portable_residues();
}

const TransformKernels& portable_transform() { return Loops<1, Integers>::kernels; }
const ResidueKernels& portable_residues() { return ResidueLoops<1, Integers>::kernels; }

NegacyclicRing::NegacyclicRing(i64 n, int low_bits, Backend backend)
    : n_(n),
      low_bits_(low_bits),
      kernels_(&transform_kernels(backend)),
      residues_(&residue_kernels(backend)) {
  expect(n >= 16 && n <= 8192 && (n & (n - 1)) == 0,
         "lattice: n must be a power of two from 16 to 8192");
  expect(low_bits >= 0 && low_bits <= kMostLowBits, "lattice: words have 64 to 80 bits");
  for (int i = 0; i < kPrimes; ++i) {
    const u64 p = static_cast<u64>(kPrime[i]);
    roots_[i] = make_roots(n, p, kernels_->lanes);
    roots_[i].unit = multiplier(power_modulo(2, static_cast<u64>(32 + low_bits), p), p);
    roots_[i].first_prime = multiplier(power_modulo(static_cast<u64>(kPrime[0]) % p, p - 2, p), p);
  }
}

Transformed NegacyclicRing::transform(WordsView words) const {
  expect(words.size() == n_, "lattice: a polynomial has n coefficients");
  Transformed out;
  for (int i = 0; i < kPrimes; ++i) {
    out[i].resize(n_);
    kernels_->residues_of_words(roots_[i], low_bits_, words.high.data(), words.low.data(), n_,
                                out[i].data());
    kernels_->forward(roots_[i], n_, n_, out[i].data());
  }
  return out;
}

Transformed NegacyclicRing::transform(std::span<const signed char> small) const {
  expect(std::ssize(small) == n_, "lattice: a polynomial has n coefficients");
  Transformed out;
  for (int i = 0; i < kPrimes; ++i) {
    out[i].resize(n_);
    for (i64 j = 0; j < n_; ++j) out[i][j] = small[j];
    kernels_->forward(roots_[i], n_, n_, out[i].data());
  }
  return out;
}

void NegacyclicRing::transform(std::span<const double> integers, Transformed& out) const {
  const i64 used = std::ssize(integers);
  expect(std::has_single_bit(static_cast<u64>(used)) && used <= n_,
         "lattice: the first coefficients of a polynomial are a power of two");
  for (int i = 0; i < kPrimes; ++i) {
    out[i].resize(n_);
    std::ranges::copy(integers, out[i].begin());
    kernels_->forward(roots_[i], n_, used, out[i].data());
  }
}

void NegacyclicRing::add_product(const Transformed& a, const Transformed& b,
                                 WordsOutput out) const {
  add_products({&a, 1}, {&b, 1}, out);
}

void NegacyclicRing::add_products(std::span<const Transformed> a, std::span<const Transformed> b,
                                  WordsOutput out) const {
  expect(out.size() == n_, "lattice: a polynomial has n coefficients");
  expect(!a.empty() && a.size() == b.size(), "lattice: products have two factors");
  std::vector<const Transformed*> left, right;
  for (const Transformed& x : a) left.push_back(&x);
  for (const Transformed& x : b) right.push_back(&x);
  Transformed sum;
  multiply_add(left, right, sum);
  add(sum, out);
}

void NegacyclicRing::multiply_add(std::span<const Transformed* const> a,
                                  std::span<const Transformed* const> b, Transformed& sum) const {
  expect(a.size() == b.size(), "lattice: products have two factors");
  std::vector<const double*> left(a.size()), right(b.size());
  for (int i = 0; i < kPrimes; ++i) {
    const bool begins = sum[i].empty();
    if (begins) sum[i].resize(n_);
    for (size_t k = 0; k < a.size(); ++k) {
      left[k] = (*a[k])[i].data();
      right[k] = (*b[k])[i].data();
    }
    residues_->add_products(roots_[i], n_, left.data(), right.data(), std::ssize(a), begins,
                            sum[i].data());
  }
}

void NegacyclicRing::add(Transformed& sum, WordsOutput out) const {
  for (int i = 0; i < kPrimes; ++i) kernels_->backward(roots_[i], n_, sum[i].data());
  kernels_->add_combined(roots_[1], low_bits_, n_, sum[0].data(), sum[1].data(), out.high.data(),
                         out.low.data());
  for (auto& residues : sum) residues.clear();
}

}  // namespace privml::lattice
