// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#include <immintrin.h>

#include "crypto/gf128.h"

namespace privml::crypto::gf128 {
namespace {

__m128i sum_of_lanes(__m256i x) {
  return _mm_xor_si128(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
}

__m256i load(const Block* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

}  // namespace

i64 products_vpclmul256(const Block* rows, i64 row_count, i64 stride, const Block* coefficients,
                        i64 count, WideProduct* sums) {
  const i64 whole = count / 2 * 2;
  if (whole == 0) return 0;
  for (i64 r = 0; r < row_count; ++r) {
    auto* sum = reinterpret_cast<__m128i*>(sums + r);
    const Block* row = rows + r * stride;
    __m256i low = _mm256_setzero_si256(), middle = low, other = low, high = low;
    for (i64 j = 0; j < whole; j += 2) {
      const __m256i x = load(row + j), c = load(coefficients + j);
      low = _mm256_xor_si256(low, _mm256_clmulepi64_epi128(x, c, 0x00));
      high = _mm256_xor_si256(high, _mm256_clmulepi64_epi128(x, c, 0x11));
      middle = _mm256_xor_si256(middle, _mm256_clmulepi64_epi128(x, c, 0x01));
      other = _mm256_xor_si256(other, _mm256_clmulepi64_epi128(x, c, 0x10));
    }
    const __m128i m = sum_of_lanes(_mm256_xor_si256(middle, other));
    _mm_store_si128(sum, _mm_xor_si128(_mm_load_si128(sum),
                                       _mm_xor_si128(sum_of_lanes(low), _mm_slli_si128(m, 8))));
    _mm_store_si128(sum + 1,
                    _mm_xor_si128(_mm_load_si128(sum + 1),
                                  _mm_xor_si128(sum_of_lanes(high), _mm_srli_si128(m, 8))));
  }
  return whole;
}

}  // namespace privml::crypto::gf128
#endif
