// SPDX-License-Identifier: Apache-2.0
// The loops of transform.h, one set per instruction set.
#pragma once

#include "lattice/transform.h"

namespace privml::lattice {

struct TransformKernels {
  i64 lanes;
  // Residues that forward() takes.
  void (*residues_of_words)(const Roots& roots, int low_bits, const u64* high, const u16* low,
                            i64 n, double* out);
  // In place, of the first `used` coefficients, a power of two; the others are zero and not read.
  // What goes in is below a prime in absolute value, what comes out below 0.51 primes.
  void (*forward)(const Roots& roots, i64 n, i64 used, double* a);
  // `count` of these values from place `first` on, of the first coefficients, a power of two of
  // them: both are multiples of their number and of 2 lanes.
  void (*forward_part)(const Roots& roots, i64 n, std::span<const double> coefficients, i64 first,
                       i64 count, double* out);
  void (*multiply)(const Roots& roots, i64 n, const double* a, const double* b, double* out);
  void (*backward)(const Roots& roots, i64 n, double* a);
  // Adds the numbers with the residues a and b.
  void (*add_combined)(const Roots& second, int low_bits, i64 n, const double* a, const double* b,
                       u64* high, u16* low);
};

// Throws InvalidArgument if this processor does not support the backend.
const TransformKernels& transform_kernels(Backend backend);
// For polynomials of n coefficients modulo a prime that is 1 modulo 2 n; without the numbers that
// words need (unit, first_prime).
Roots make_roots(i64 n, u64 prime, i64 lanes);
Multiplier multiplier(u64 value, u64 prime);
u64 power_modulo(u64 base, u64 exponent, u64 prime);

const TransformKernels& portable_transform();
const TransformKernels& avx2_transform();
const TransformKernels& avx512_transform();

}  // namespace privml::lattice
