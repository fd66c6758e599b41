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
  // In place; what comes out is below 0.51 primes in absolute value.
  void (*forward)(const Roots& roots, i64 n, double* a);
  void (*multiply)(const Roots& roots, i64 n, const double* a, const double* b, double* out);
  // out += a b, reduced as that of multiply().
  void (*add_multiple)(const Roots& roots, i64 n, const double* a, const double* b, double* out);
  void (*backward)(const Roots& roots, i64 n, double* a);
  // Adds the numbers with the residues a and b.
  void (*add_combined)(const Roots& second, int low_bits, i64 n, const double* a, const double* b,
                       u64* high, u16* low);
};

const TransformKernels& portable_transform();
const TransformKernels& avx2_transform();
const TransformKernels& avx512_transform();

}  // namespace privml::lattice
