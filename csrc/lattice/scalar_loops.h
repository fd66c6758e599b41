// SPDX-License-Identifier: Apache-2.0
// Kernels over compiler vectors of L doubles. Everything stands in an unnamed namespace: each file
// that includes this compiles its own copy for its own instructions. Whether multiplications and
// additions are fused (Arithmetic::multiply_add) does not matter to sums, which are all exact.
#pragma once

#include <utility>

#include "lattice/lanes.h"
#include "lattice/scalar_kernels.h"

namespace privml::lattice {
namespace {

template <int L, int vectors, class Arithmetic>
struct ScalarLoops {
  using Reals = typename Lanes<L>::Reals;
  using Numbers = typename Lanes<L>::Numbers;
  using StoredReals = typename Lanes<L>::StoredReals;
  using StoredNumbers = typename Lanes<L>::StoredNumbers;
  typedef i64 SignedNumbers __attribute__((vector_size(8 * L)));
  static constexpr i64 kColumns = vectors * L;
  static_assert(kColumns <= kMostScalarColumns);

  static Reals all(double x) { return broadcast<L>(x); }

  // |x| <= 2^53
  static Numbers integers(Reals x) {
    // AVX-512 has an instruction for it.
    if constexpr (L == 8)
      return reinterpret_cast<Numbers>(__builtin_convertvector(x, SignedNumbers));
    constexpr double kHalf = 1 << 26;
    const Reals upper = Arithmetic::multiply_add(x, all(1 / kHalf), all(kRound));
    const Reals lower = Arithmetic::multiply_add(upper - kRound, all(-kHalf), x) + kRound;
    return (reinterpret_cast<Numbers>(upper) << 26) + reinterpret_cast<Numbers>(lower) -
           ((kRoundBits << 26) + kRoundBits);
  }

  template <int rows>
  static void multiply(const double* __restrict weights, const double* __restrict digits, i64 inner,
                       i64* __restrict sums) {
    Reals tile[rows][vectors] = {};
    for (i64 k = 0; k < inner; ++k, weights += rows, digits += kColumns) {
      Reals y[vectors];
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) y[v] = reinterpret_cast<const StoredReals*>(digits)[v];
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
        const Reals x = all(weights[r]);
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v)
          tile[r][v] = Arithmetic::multiply_add(x, y[v], tile[r][v]);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v)
        reinterpret_cast<StoredNumbers*>(sums)[r * vectors + v] += integers(tile[r][v]);
    }
  }

  static void split(const Digits& digits, const u64* high, const u16* low, i64 stride, i64 inner,
                    double* panels, i64 apart) {
    const int bits = digits.bits, low_bits = digits.low_bits, last = digits.count - 1;
    const u64 mask = low_mask(bits);
    // A half of each lower digit's range, which makes digits balanced.
    u64 offset = u64{1} << 63;
    for (int i = 1; i <= last; ++i) offset += u64{1} << (i * bits - 1 - low_bits);
    const double half = static_cast<double>(u64{1} << (bits - 1)) + kWhole;
    const int top_bits = 64 + low_bits - last * bits;
    const double top_half = static_cast<double>(u64{1} << (top_bits - 1)) + kWhole;
    for (i64 k = 0; k < inner; ++k, high += stride, low += stride, panels += kColumns) {
      for (int v = 0; v < vectors; ++v) {
        Numbers word;
        __builtin_memcpy(&word, high + v * L, sizeof word);
        word += offset;
        const Numbers least = (word << low_bits | Arithmetic::widened(low + v * L)) & mask;
        double* out = panels + v * L;
        *reinterpret_cast<StoredReals*>(out) = reinterpret_cast<Reals>(least | kWholeBits) - half;
        if (last == 2) {
          const Numbers middle = word >> (bits - low_bits) & mask;
          *reinterpret_cast<StoredReals*>(out + apart) =
              reinterpret_cast<Reals>(middle | kWholeBits) - half;
        }
        const Numbers top = word >> (last * bits - low_bits);
        *reinterpret_cast<StoredReals*>(out + last * apart) =
            reinterpret_cast<Reals>(top | kWholeBits) - top_half;
      }
    }
  }

  static void join(const Digits& digits, const i64* sums, i64 stride, u64* high, u16* low) {
    const int bits = digits.bits, low_bits = digits.low_bits;
    const u64 mask = low_mask(low_bits), offset = u64{1} << 63;
    for (int v = 0; v < vectors; ++v) {
      const auto sum = [&](int digit) {
        return reinterpret_cast<const StoredNumbers*>(sums + digit * stride)[v];
      };
      Numbers word = (sum(0) + offset) >> low_bits;
      word += (sum(1) << (bits - low_bits)) - (offset >> low_bits);
      if (digits.count == 3) word += sum(2) << (2 * bits - low_bits);
      __builtin_memcpy(high + v * L, &word, sizeof word);
      Arithmetic::narrow(sum(0) & mask, low + v * L);
    }
  }

  template <int... rows>
  static constexpr ScalarKernels kernels(std::integer_sequence<int, rows...>) {
    ScalarKernels all{sizeof...(rows), kColumns, {}, split, join};
    ((all.of[rows + 1] = multiply<rows + 1>), ...);
    return all;
  }
};

}  // namespace
}  // namespace privml::lattice
