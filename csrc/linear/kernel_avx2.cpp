// SPDX-License-Identifier: Apache-2.0
// AVX2 multiplies lanes of 32 bits only. A product mod 2^64 is low * low in full plus 2^32 times
// both cross products, which matter mod 2^32 alone: one lane product of x with y's halves swapped
// gives both, and their sums are kept apart until the end.
#if defined(__x86_64__)
#include <immintrin.h>

#include "linear/kernel_vector.h"

namespace privml::linear {
namespace {

template <int rows>
void multiply_words(const u64* __restrict a, const u64* __restrict b, i64 inner,
                    u64* __restrict tile) {
  typedef u64 Words __attribute__((vector_size(32)));
  typedef u32 Halves __attribute__((vector_size(32)));
  Words low[rows] = {};
  Halves cross[rows] = {};
  for (i64 k = 0; k < inner; ++k, a += rows, b += 4) {
    const __m256i y = _mm256_load_si256(reinterpret_cast<const __m256i*>(b));
    const __m256i swapped = _mm256_shuffle_epi32(y, 0xb1);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const __m256i x = _mm256_set1_epi64x(static_cast<long long>(a[r]));
      low[r] += reinterpret_cast<Words>(_mm256_mul_epu32(x, y));
      cross[r] += reinterpret_cast<Halves>(x) * reinterpret_cast<Halves>(swapped);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    const Words both = reinterpret_cast<Words>(cross[r]);
    reinterpret_cast<Words*>(tile)[r] = low[r] + (both << 32) + (both >> 32 << 32);
  }
}

}  // namespace

template <>
Kernels<u32> avx2_kernels() {
  return vector_kernels<u32, 32, 2>(std::make_integer_sequence<int, 6>{});
}
template <>
Kernels<u64> avx2_kernels() {
  return {5,
          4,
          {nullptr, multiply_words<1>, multiply_words<2>, multiply_words<3>, multiply_words<4>,
           multiply_words<5>}};
}

}  // namespace privml::linear
#endif
