// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#include <immintrin.h>

#include "lattice/residue_loops.h"
#include "lattice/scalar_loops.h"

namespace privml::lattice {
namespace {

struct Fused256 {
  using Numbers = Lanes<4>::Numbers;
  static __m256d multiply_add(__m256d x, __m256d y, __m256d z) { return _mm256_fmadd_pd(x, y, z); }
  static __m256d rounded_product(__m256d x, __m256d y) {
    const __m256d round = _mm256_set1_pd(kRound);
    return _mm256_sub_pd(_mm256_fmadd_pd(x, y, round), round);
  }
  static __m256d remainder(__m256d x, __m256d y, __m256d q, double p) {
    const __m256d high = _mm256_mul_pd(x, y);
    return _mm256_add_pd(_mm256_fnmadd_pd(q, _mm256_set1_pd(p), high), _mm256_fmsub_pd(x, y, high));
  }
  static Numbers widened(const u16* in) {
    return reinterpret_cast<Numbers>(
        _mm256_cvtepu16_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(in))));
  }
  static void narrow(Numbers numbers, u16* out) {
    const __m256i all = reinterpret_cast<__m256i>(numbers);
    __m128i packed =
        _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    packed = _mm_packus_epi32(packed, packed);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out), packed);
  }
};

}  // namespace

const TransformKernels& avx2_transform() { return Loops<4, Fused256>::kernels; }
const ResidueKernels& avx2_residues() { return ResidueLoops<4, Fused256>::kernels; }

const ScalarKernels& avx2_scalars() {
  static constexpr ScalarKernels kernels =
      ScalarLoops<4, 2, Fused256>::kernels(std::make_integer_sequence<int, 6>{});
  return kernels;
}

}  // namespace privml::lattice
#endif
