// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#include <immintrin.h>

#include "crypto/gf128.h"

// g++ 12 reports its own AVX-512 headers here.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace privml::crypto::gf128 {
namespace {

__m128i sum_of_lanes(__m512i x) {
  const __m256i halves =
      _mm256_xor_si256(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
  return _mm_xor_si128(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
}

}  // namespace

i64 products_vpclmul512(const Block* rows, i64 row_count, i64 stride, const Block* coefficients,
                        i64 count, WideProduct* sums) {
  const i64 whole = count / 4 * 4;
  if (whole == 0) return 0;
  for (i64 r = 0; r < row_count; ++r) {
    auto* sum = reinterpret_cast<__m128i*>(sums + r);
    const Block* row = rows + r * stride;
    __m512i low = _mm512_setzero_si512(), middle = low, high = low;
    for (i64 j = 0; j < whole; j += 4) {
      const __m512i x = _mm512_loadu_si512(row + j), c = _mm512_loadu_si512(coefficients + j);
      low = _mm512_xor_si512(low, _mm512_clmulepi64_epi128(x, c, 0x00));
      high = _mm512_xor_si512(high, _mm512_clmulepi64_epi128(x, c, 0x11));
      // a ^ b ^ c in one instruction.
      middle = _mm512_ternarylogic_epi64(middle, _mm512_clmulepi64_epi128(x, c, 0x01),
                                         _mm512_clmulepi64_epi128(x, c, 0x10), 0x96);
    }
    const __m128i m = sum_of_lanes(middle);
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
