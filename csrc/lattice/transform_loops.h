// SPDX-License-Identifier: Apache-2.0
// Transforms over compiler vectors of L doubles. Everything stands in an unnamed namespace: each
// file that includes this compiles its own copy for its own instructions. Contraction to fused
// multiply-adds must be off: roundings are meant as written.
#pragma once

#include <algorithm>
#include <bit>
#include <utility>

#include "lattice/lanes.h"
#include "lattice/transform_kernels.h"

namespace privml::lattice {
namespace {

// x times a fixed number modulo p, below 0.51 p in absolute value. |x| is below 2^51. Arithmetic is
// how the three products are made exact.
template <int L, class Arithmetic>
typename Lanes<L>::Reals times(typename Lanes<L>::Reals x, typename Lanes<L>::Reals value,
                               typename Lanes<L>::Reals quotient, double p) {
  return Arithmetic::remainder(x, value, Arithmetic::rounded_product(x, quotient), p);
}

template <int L, class Arithmetic>
typename Lanes<L>::Reals reduced(typename Lanes<L>::Reals x, double p, double inverse) {
  return Arithmetic::multiply_add(Arithmetic::rounded_product(x, broadcast<L>(inverse)),
                                  broadcast<L>(-p), x);
}

template <int L>
typename Lanes<L>::Reals at(const double* a) {
  typename Lanes<L>::Reals x;
  __builtin_memcpy(&x, a, sizeof x);
  return x;
}
template <int L>
void put(double* a, typename Lanes<L>::Reals x) {
  __builtin_memcpy(a, &x, sizeof x);
}

// Exchanges the lanes of u whose number has bit `step` with those of v whose number has it not.
template <int L, int step, std::size_t... lane>
void exchange(typename Lanes<L>::Reals& u, typename Lanes<L>::Reals& v,
              std::index_sequence<lane...>) {
  const auto first =
      __builtin_shufflevector(u, v,
                              (static_cast<int>(lane) & step ? L + (static_cast<int>(lane) ^ step)
                                                             : static_cast<int>(lane))...);
  v = __builtin_shufflevector(u, v,
                              (static_cast<int>(lane) & step ? L + static_cast<int>(lane)
                                                             : (static_cast<int>(lane) ^ step))...);
  u = first;
}

template <int L, class Arithmetic>
struct Loops {
  using Reals = typename Lanes<L>::Reals;
  using Numbers = typename Lanes<L>::Numbers;
  using StoredReals = typename Lanes<L>::StoredReals;
  using StoredNumbers = typename Lanes<L>::StoredNumbers;
  static Reals all(double x) { return broadcast<L>(x); }

  static void residues_of_words(const Roots& roots, int low_bits, const u64* high, const u16* low,
                                i64 n, double* out) {
    const double p = roots.prime, shift = static_cast<double>(1 << low_bits);
    const Reals unit = all(roots.unit.value), quotient = all(roots.unit.quotient);
    for (i64 i = 0; i < n; i += L) {
      const Numbers word = *reinterpret_cast<const StoredNumbers*>(high + i);
      const Numbers least = Arithmetic::widened(low + i);
      const Numbers upper = (word >> 32) ^ u64 { 0x80000000 }, lower = word & u64{0xffffffff};
      const Reals signed_upper =
          reinterpret_cast<Reals>(upper | kWholeBits) - (kWhole + 2147483648.);
      const Reals rest = (reinterpret_cast<Reals>(lower | kWholeBits) - kWhole) * shift +
                         (reinterpret_cast<Reals>(least | kWholeBits) - kWhole);
      put<L>(out + i, times<L, Arithmetic>(signed_upper, unit, quotient, p) + rest);
    }
  }

  // A root of unity, the same for all lanes.
  struct Root {
    Reals value, quotient;
  };
  static Root root_at(const AlignedVector<double>& values, const AlignedVector<double>& quotients,
                      i64 i) {
    return {all(values[i]), all(quotients[i])};
  }
  static Root root_of(Multiplier m) { return {all(m.value), all(m.quotient)}; }
  static Reals times_root(Reals x, const Root& root, double p) {
    return times<L, Arithmetic>(x, root.value, root.quotient, p);
  }
  static void butterfly(Reals& u, Reals& v, const Root& root, double p) {
    const Reals product = times_root(v, root, p);
    v = u - product;
    u = u + product;
  }
  // Without a reduction of the sum.
  static void turned_butterfly(Reals& u, Reals& v, const Root& root, double p) {
    const Reals difference = u - v;
    u = u + v;
    v = times_root(difference, root, p);
  }

  // The last layers of forward() on 2 L neighbours, the first ones of backward().
  template <int step>
  static void last_layers(const double* roots, const double* quotients, double p, Reals& u,
                          Reals& v) {
    if constexpr (step >= 1) {
      exchange<L, step>(u, v, std::make_index_sequence<L>{});
      const Reals product = times<L, Arithmetic>(v, at<L>(roots), at<L>(quotients), p);
      v = u - product;
      u = u + product;
      last_layers<step / 2>(roots + L, quotients + L, p, u, v);
    }
  }
  template <int step>
  static void first_layers(const double* roots, const double* quotients, double p, Reals& u,
                           Reals& v) {
    if constexpr (step < L) {
      const Reals difference = u - v;
      u = u + v;
      v = times<L, Arithmetic>(difference, at<L>(roots), at<L>(quotients), p);
      exchange<L, step>(u, v, std::make_index_sequence<L>{});
      first_layers<step * 2>(roots + L, quotients + L, p, u, v);
    }
  }
  static constexpr int kInner = L == 8 ? 3 : L == 4 ? 2 : 0;  // layers within vectors
  static_assert(L == 1 << kInner);

  // Of forward(): `count` roots from number `root` on of the layer with neighbours of t, and the
  // layer after it.
  static void two_layers(const Roots& roots, i64 root, i64 count, i64 t, double* a) {
    const double p = roots.prime;
    for (i64 i = root; i < root + count; ++i, a += 2 * t) {
      const Root first = root_at(roots.forward, roots.forward_quotient, i);
      const Root low = root_at(roots.forward, roots.forward_quotient, 2 * i);
      const Root high = root_at(roots.forward, roots.forward_quotient, 2 * i + 1);
      for (i64 j = 0; j < t / 2; j += L) {
        double *x0 = a + j, *x1 = x0 + t / 2, *x2 = x0 + t, *x3 = x1 + t;
        Reals y0 = at<L>(x0), y1 = at<L>(x1), y2 = at<L>(x2), y3 = at<L>(x3);
        butterfly(y0, y2, first, p);
        butterfly(y1, y3, first, p);
        butterfly(y0, y1, low, p);
        butterfly(y2, y3, high, p);
        put<L>(x0, y0);
        put<L>(x1, y1);
        put<L>(x2, y2);
        put<L>(x3, y3);
      }
    }
  }

  // Of forward(), on whole vectors: the layer with neighbours of `half` vectors and those after it.
  template <int half, int V>
  static void whole_layers(const Roots& roots, i64 root, Reals (&y)[V]) {
    if constexpr (half >= 1) {
#pragma GCC unroll 8
      for (int i = 0; i < V; i += 2 * half) {
        const Root one = root_at(roots.forward, roots.forward_quotient, root + i / (2 * half));
#pragma GCC unroll 8
        for (int j = i; j < i + half; ++j) butterfly(y[j], y[j + half], one, roots.prime);
      }
      whole_layers<half / 2, V>(roots, 2 * root, y);
    }
  }
  // The last layers, on V vectors, of which `root` is the only one in the first of these layers.
  template <int V>
  static void end_forward(const Roots& roots, i64 root, i64 inner, const double* in, double* out) {
    Reals y[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) y[v] = at<L>(in + v * L);
    whole_layers<V / 2, V>(roots, root, y);
    const double* own = roots.forward.data() + inner;
    const double* own_quotient = roots.forward_quotient.data() + inner;
#pragma GCC unroll 8
    for (int v = 0; v < V; v += 2, own += kInner * L, own_quotient += kInner * L) {
      last_layers<L / 2>(own, own_quotient, roots.prime, y[v], y[v + 1]);
      put<L>(out + v * L, reduced<L, Arithmetic>(y[v], roots.prime, roots.inverse));
      put<L>(out + (v + 1) * L, reduced<L, Arithmetic>(y[v + 1], roots.prime, roots.inverse));
    }
  }

  // The values at `width` places from `first` on, of as many coefficients, where the polynomial has
  // no others: a layer that meets zeros alone copies. `in` may be `out`. Values grow by 0.51 primes
  // in each layer, so that none needs a reduction before the last. Two layers, or the last ones,
  // pass memory once.
  static void forward_places(const Roots& roots, i64 n, i64 width, i64 first, const double* in,
                             double* out) {
    const i64 last = std::min<i64>(width, 8 * L);
    i64 root = (n + first) / width, count = 1, t = width / 2;
    if (width > last) {
      if (in != out) std::copy_n(in, width, out);
      in = out;
      if (std::countr_zero(static_cast<u64>(width / last)) % 2 != 0) {
        const Root only = root_at(roots.forward, roots.forward_quotient, root);
        for (i64 j = 0; j < t; j += L) {
          Reals u = at<L>(out + j), v = at<L>(out + t + j);
          butterfly(u, v, only, roots.prime);
          put<L>(out + j, u);
          put<L>(out + t + j, v);
        }
        root *= 2;
        count *= 2;
        t /= 2;
      }
      for (; 2 * t > last; root *= 4, count *= 4, t /= 4) two_layers(roots, root, count, t, out);
    }
    for (i64 i = 0; i < width; i += last, ++root) {
      const i64 inner = n / L + (first + i) / 2 * kInner;
      if (last == 8 * L) {
        end_forward<8>(roots, root, inner, in + i, out + i);
      } else if (last == 4 * L) {
        end_forward<4>(roots, root, inner, in + i, out + i);
      } else {
        end_forward<2>(roots, root, inner, in + i, out + i);
      }
    }
  }

  static void forward(const Roots& roots, i64 n, i64 used, double* a) {
    const i64 width = std::max<i64>(used, 2 * L);
    std::fill(a + used, a + width, 0.);
    for (i64 first = n - width; first >= 0; first -= width)
      forward_places(roots, n, width, first, a, a + first);
  }

  static void forward_part(const Roots& roots, i64 n, std::span<const double> coefficients,
                           i64 first, i64 count, double* out) {
    const i64 width = std::max<i64>(std::ssize(coefficients), 2 * L);
    const double* in = coefficients.data();
    Reals padded[2] = {};
    if (width > std::ssize(coefficients)) {
      __builtin_memcpy(padded, in, coefficients.size_bytes());
      in = reinterpret_cast<const double*>(padded);
    }
    for (i64 i = 0; i < count; i += width) forward_places(roots, n, width, first + i, in, out + i);
  }

  static void multiply(const Roots& roots, i64 n, const double* a, const double* b, double* out) {
    const double p = roots.prime, inverse = roots.inverse;
    for (i64 i = 0; i < n; i += L) {
      const Reals x = at<L>(a + i), y = at<L>(b + i);
      put<L>(out + i,
             Arithmetic::remainder(x, y, Arithmetic::rounded_product(x * y, all(inverse)), p));
    }
  }

  // Of backward(): the layer with m roots and neighbours of t, and the one after it, which divides
  // by n if it is the last. Values come and go below 1.02 primes.
  static void two_turned_layers(const Roots& roots, i64 m, i64 t, double* a) {
    const double p = roots.prime, inverse = roots.inverse;
    const bool is_last = m == 2;
    const Root degree = root_of(roots.of_degree);
    for (i64 i = 0; i < m / 2; ++i, a += 4 * t) {
      const Root low = root_at(roots.backward, roots.backward_quotient, m + 2 * i);
      const Root high = root_at(roots.backward, roots.backward_quotient, m + 2 * i + 1);
      const Root second = is_last ? root_of(roots.last)
                                  : root_at(roots.backward, roots.backward_quotient, m / 2 + i);
      for (i64 j = 0; j < t; j += L) {
        double *x0 = a + j, *x1 = x0 + t, *x2 = x1 + t, *x3 = x2 + t;
        Reals y0 = at<L>(x0), y1 = at<L>(x1), y2 = at<L>(x2), y3 = at<L>(x3);
        turned_butterfly(y0, y1, low, p);
        turned_butterfly(y2, y3, high, p);
        turned_butterfly(y0, y2, second, p);
        turned_butterfly(y1, y3, second, p);
        put<L>(x0, is_last ? times_root(y0, degree, p) : reduced<L, Arithmetic>(y0, p, inverse));
        put<L>(x1, is_last ? times_root(y1, degree, p) : y1);
        put<L>(x2, y2);
        put<L>(x3, y3);
      }
    }
  }

  static void backward(const Roots& roots, i64 n, double* a) {
    const double p = roots.prime, inverse = roots.inverse;
    const double* own = roots.backward.data() + n / L;
    const double* own_quotient = roots.backward_quotient.data() + n / L;
    i64 m = n / (2 * L), t = L;
    const bool with_next = m > 1;
    for (i64 i = 0; i < m; ++i, own += kInner * L, own_quotient += kInner * L) {
      double *low = a + 2 * i * L, *high = low + L;
      Reals u = at<L>(low), v = at<L>(high);
      first_layers<1>(own, own_quotient, p, u, v);
      u = reduced<L, Arithmetic>(u, p, inverse);
      v = reduced<L, Arithmetic>(v, p, inverse);
      if (with_next)
        turned_butterfly(u, v, root_at(roots.backward, roots.backward_quotient, m + i), p);
      put<L>(low, u);
      put<L>(high, v);
    }
    if (with_next) {
      m /= 2;
      t *= 2;
    }
    if (std::countr_zero(static_cast<u64>(m)) % 2 == 0) {
      const bool is_last = m == 1;
      const Root degree = root_of(roots.of_degree);
      for (i64 i = 0; i < m; ++i) {
        const Root root =
            is_last ? root_of(roots.last) : root_at(roots.backward, roots.backward_quotient, m + i);
        double *low = a + 2 * i * t, *high = low + t;
        for (i64 j = 0; j < t; j += L) {
          Reals u = at<L>(low + j), v = at<L>(high + j);
          turned_butterfly(u, v, root, p);
          put<L>(low + j,
                 is_last ? times_root(u, degree, p) : reduced<L, Arithmetic>(u, p, inverse));
          put<L>(high + j, v);
        }
      }
      m /= 2;
      t *= 2;
    }
    for (; m > 1; m /= 4, t *= 4) two_turned_layers(roots, m, t, a);
  }

  // The number is x = a + p1 k, k = (b - a) / p1 mod p2; k and p1 in two digits of 24 bits, so that
  // products fit words, of which the sums are modulo 2^(64 + low_bits).
  static void add_combined(const Roots& second, int low_bits, i64 n, const double* a,
                           const double* b, u64* high, u16* low) {
    constexpr u64 kDigit = (u64{1} << 24) - 1, kOffset = u64{1} << 52;
    const u64 prime = static_cast<u64>(kPrime[0]);
    const u64 least = prime & kDigit, most = prime >> 24, mask = low_mask(low_bits);
    const Reals factor = all(second.first_prime.value), quotient = all(second.first_prime.quotient);
    for (i64 i = 0; i < n; i += L) {
      const Reals first = at<L>(a + i);
      const Reals multiple =
          times<L, Arithmetic>(at<L>(b + i) - first, factor, quotient, second.prime);
      const Numbers k = reinterpret_cast<Numbers>(multiple + kRound) - kRoundBits;
      const Numbers k0 = k & kDigit;
      const Numbers k1 = ((k + (u64{1} << 63)) >> 24) - (u64{1} << 39);  // rounded down
      const Numbers middle = most * k0 + least * k1 + (most * k1 << 24);
      const Numbers sum = Arithmetic::widened(low + i) + least * k0 + kOffset +
                          (reinterpret_cast<Numbers>(first + kRound) - kRoundBits);
      StoredNumbers& word = *reinterpret_cast<StoredNumbers*>(high + i);
      word = word + (middle << (24 - low_bits)) + (sum >> low_bits) - (kOffset >> low_bits);
      Arithmetic::narrow(sum & mask, low + i);
    }
  }

  static constexpr TransformKernels kernels{L,        residues_of_words, forward,     forward_part,
                                            multiply, backward,          add_combined};
};

}  // namespace
}  // namespace privml::lattice
