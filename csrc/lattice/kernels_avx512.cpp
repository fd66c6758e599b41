// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#include <immintrin.h>

#include "lattice/residue_loops.h"
#include "lattice/scalar_loops.h"

namespace privml::lattice {
namespace {

struct Fused512 : ShortWords<8> {
  static __m512d multiply_add(__m512d x, __m512d y, __m512d z) { return _mm512_fmadd_pd(x, y, z); }
  static __m512d rounded_product(__m512d x, __m512d y) {
    const __m512d round = _mm512_set1_pd(kRound);
    return _mm512_sub_pd(_mm512_fmadd_pd(x, y, round), round);
  }
  static __m512d remainder(__m512d x, __m512d y, __m512d q, double p) {
    const __m512d high = _mm512_mul_pd(x, y);
    return _mm512_add_pd(_mm512_fnmadd_pd(q, _mm512_set1_pd(p), high), _mm512_fmsub_pd(x, y, high));
  }
};

}  // namespace

const TransformKernels& avx512_transform() { return Loops<8, Fused512>::kernels; }
const ResidueKernels& avx512_residues() { return ResidueLoops<8, Fused512>::kernels; }

const ScalarKernels& avx512_scalars() {
  static constexpr ScalarKernels kernels =
      ScalarLoops<8, 2, Fused512>::kernels(std::make_integer_sequence<int, 12>{});
  return kernels;
}

}  // namespace privml::lattice
#endif
