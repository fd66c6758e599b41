// SPDX-License-Identifier: Apache-2.0
// The loops of residue_ring.h, one set per instruction set. Residues are of the range that
// TransformKernels give: below 0.51 primes in absolute value.
#pragma once

#include "lattice/transform_kernels.h"

namespace privml::lattice {

inline constexpr int kLimbs = 3;

// What residues of one prime are multiplied with: of each 32 bits of a number of some limbs, the
// lowest first; to find a number from its residues; and two to the bits of a digit.
struct ResidueMultipliers {
  std::array<Multiplier, 2 * kLimbs> halves;
  Multiplier recombined, digit;
};

struct ResidueKernels {
  // The sum of a[k] b[k] for k < count, added to `out` or, if that is `fresh`, put there.
  void (*add_products)(const Roots& roots, i64 n, const double* const* a, const double* const* b,
                       i64 count, bool fresh, double* out);
  // With v = a b, difference = sum - v and sum += v.
  void (*combine)(const Roots& roots, i64 n, const double* a, const double* b, double* sum,
                  double* difference);
  // Of numbers of up to kLimbs words, limb by limb with the lowest first, in two's complement.
  void (*residues)(const Roots& roots, const ResidueMultipliers& by, i64 n, const u64* const* limbs,
                   int count, double* out);
  // The residues times by.recombined, from 0 to the prime.
  void (*recombine)(const Roots& roots, const ResidueMultipliers& by, i64 n, const double* in,
                    u64* out);
  // The first two digits of `bits` bits, balanced, of numbers divided by the product of the primes;
  // residues stand one prime after another.
  void (*digits)(const Roots* roots, const ResidueMultipliers* by, int primes, i64 n, int bits,
                 const double* in, double* first, double* second);
};

// Throws InvalidArgument if this processor does not support the backend.
const ResidueKernels& residue_kernels(Backend backend);

const ResidueKernels& portable_residues();
const ResidueKernels& avx2_residues();
const ResidueKernels& avx512_residues();

}  // namespace privml::lattice
