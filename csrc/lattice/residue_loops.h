// SPDX-License-Identifier: Apache-2.0
// Loops on residues over compiler vectors of L doubles, in an unnamed namespace as those of
// transform_loops.h.
#pragma once

#include "lattice/residue_kernels.h"
#include "lattice/transform_loops.h"

namespace privml::lattice {
namespace {

template <int L, class Arithmetic>
struct ResidueLoops {
  using Reals = typename Lanes<L>::Reals;
  using Numbers = typename Lanes<L>::Numbers;
  using StoredNumbers = typename Lanes<L>::StoredNumbers;
  static Reals all(double x) { return broadcast<L>(x); }
  static Reals times_fixed(Reals x, Multiplier by, double p) {
    return times<L, Arithmetic>(x, all(by.value), all(by.quotient), p);
  }
  static Reals nearest(Reals x) { return (x + kRound) - kRound; }

  // V vectors from i on. Sums of eight products stay far below 2^52.
  template <int V>
  static void add_products_at(const Roots& roots, i64 i, const double* const* a,
                              const double* const* b, i64 count, bool fresh, double* out) {
    const double p = roots.prime, inverse = roots.inverse;
    Reals sums[V];
    for (int v = 0; v < V; ++v) sums[v] = fresh ? Reals{} : at<L>(out + i + v * L);
    for (i64 k = 0; k < count; ++k) {
      for (int v = 0; v < V; ++v) {
        const Reals x = at<L>(a[k] + i + v * L), y = at<L>(b[k] + i + v * L);
        sums[v] += Arithmetic::remainder(x, y, Arithmetic::rounded_product(x * y, all(inverse)), p);
      }
      if (k % 8 == 7)
        for (int v = 0; v < V; ++v) sums[v] = reduced<L, Arithmetic>(sums[v], p, inverse);
    }
    for (int v = 0; v < V; ++v)
      put<L>(out + i + v * L, reduced<L, Arithmetic>(sums[v], p, inverse));
  }

  static void add_products(const Roots& roots, i64 n, const double* const* a,
                           const double* const* b, i64 count, bool fresh, double* out) {
    i64 i = 0;
    for (; i + 4 * L <= n; i += 4 * L) add_products_at<4>(roots, i, a, b, count, fresh, out);
    for (; i < n; i += L) add_products_at<1>(roots, i, a, b, count, fresh, out);
  }

  static void combine(const Roots& roots, i64 n, const double* a, const double* b, double* sum,
                      double* difference) {
    const double p = roots.prime, inverse = roots.inverse;
    for (i64 i = 0; i < n; i += L) {
      const Reals x = at<L>(a + i), y = at<L>(b + i), u = at<L>(sum + i);
      const Reals v =
          Arithmetic::remainder(x, y, Arithmetic::rounded_product(x * y, all(inverse)), p);
      put<L>(sum + i, reduced<L, Arithmetic>(u + v, p, inverse));
      put<L>(difference + i, reduced<L, Arithmetic>(u - v, p, inverse));
    }
  }

  static void residues(const Roots& roots, const ResidueMultipliers& by, i64 n,
                       const u64* const* limbs, int count, double* out) {
    const double p = roots.prime;
    for (i64 i = 0; i < n; i += L) {
      Reals sum{};
      for (int limb = 0; limb < count; ++limb) {
        const Numbers word = *reinterpret_cast<const StoredNumbers*>(limbs[limb] + i);
        // The highest half is signed.
        const u64 sign = limb == count - 1 ? u64{0x80000000} : 0;
        const Numbers upper = (word >> 32) ^ sign, lower = word & u64{0xffffffff};
        const Reals high =
            reinterpret_cast<Reals>(upper | kWholeBits) - (kWhole + static_cast<double>(sign));
        const Reals low = reinterpret_cast<Reals>(lower | kWholeBits) - kWhole;
        sum += times_fixed(low, by.halves[2 * limb], p);
        sum += times_fixed(high, by.halves[2 * limb + 1], p);
      }
      put<L>(out + i, reduced<L, Arithmetic>(sum, p, roots.inverse));
    }
  }

  static void recombine(const Roots& roots, const ResidueMultipliers& by, i64 n, const double* in,
                        u64* out) {
    const double p = roots.prime;
    const Numbers prime = reinterpret_cast<Numbers>(all(p) + kRound) - kRoundBits;
    for (i64 i = 0; i < n; i += L) {
      const Reals x = times_fixed(at<L>(in + i), by.recombined, p);
      Numbers y = reinterpret_cast<Numbers>(x + kRound) - kRoundBits;
      y = y + (prime & (u64{0} - (y >> 63)));
      *reinterpret_cast<StoredNumbers*>(out + i) = y;
    }
  }

  // The residue below half of the prime in absolute value, so that all backends compute with the
  // same one.
  static Reals centred(Reals x, double p) {
    const Reals half = all(p / 2);
    const auto above = reinterpret_cast<Numbers>(x > half),
               below = reinterpret_cast<Numbers>(x < -half);
    const auto prime = reinterpret_cast<Numbers>(all(p));
    return x - reinterpret_cast<Reals>(above & prime) + reinterpret_cast<Reals>(below & prime);
  }

  // The second digit is that of the number times 2^bits, taken next to what the first one leaves,
  // for a number between two digits may be rounded to either.
  static void digits(const Roots* roots, const ResidueMultipliers* by, int primes, i64 n, int bits,
                     const double* in, double* first, double* second) {
    const double unit = static_cast<double>(u64{1} << bits);
    for (i64 i = 0; i < n; i += L) {
      Reals whole{}, rest{};
      for (int j = 0; j < primes; ++j) {
        const double p = roots[j].prime;
        const Reals x = centred(times_fixed(at<L>(in + j * n + i), by[j].recombined, p), p);
        whole += x * roots[j].inverse;
        rest += centred(times_fixed(x, by[j].digit, p), p) * roots[j].inverse;
      }
      whole = (whole - nearest(whole)) * unit;
      const Reals digit = nearest(whole);
      rest = rest - nearest(rest - (whole - digit));
      put<L>(first + i, digit);
      put<L>(second + i, nearest(rest * unit));
    }
  }

  static constexpr ResidueKernels kernels{add_products, combine, residues, recombine, digits};
};

}  // namespace
}  // namespace privml::lattice
