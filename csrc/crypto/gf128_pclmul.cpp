// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#include <immintrin.h>

#include "crypto/gf128.h"

namespace privml::crypto::gf128 {

void products_pclmul(const Block* rows, i64 row_count, i64 stride, const Block* coefficients,
                     i64 count, WideProduct* sums) {
  for (i64 r = 0; r < row_count; ++r) {
    auto* sum = reinterpret_cast<__m128i*>(sums + r);
    __m128i low = _mm_setzero_si128(), middle = low, high = low;
    for (i64 j = 0; j < count; ++j) {
      const __m128i x = _mm_load_si128(reinterpret_cast<const __m128i*>(rows + r * stride + j));
      const __m128i c = _mm_load_si128(reinterpret_cast<const __m128i*>(coefficients + j));
      low = _mm_xor_si128(low, _mm_clmulepi64_si128(x, c, 0x00));
      high = _mm_xor_si128(high, _mm_clmulepi64_si128(x, c, 0x11));
      middle = _mm_xor_si128(middle, _mm_xor_si128(_mm_clmulepi64_si128(x, c, 0x01),
                                                   _mm_clmulepi64_si128(x, c, 0x10)));
    }
    low = _mm_xor_si128(low, _mm_slli_si128(middle, 8));
    high = _mm_xor_si128(high, _mm_srli_si128(middle, 8));
    _mm_store_si128(sum, _mm_xor_si128(_mm_load_si128(sum), low));
    _mm_store_si128(sum + 1, _mm_xor_si128(_mm_load_si128(sum + 1), high));
  }
}

}  // namespace privml::crypto::gf128
#endif
