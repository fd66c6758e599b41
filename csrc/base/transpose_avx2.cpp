// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#include <immintrin.h>

#include "base/transpose.h"
#include "base/transpose_square.h"

namespace privml {
namespace {

// Rows r and r + 64 in the halves of a register; words 0 and 1 of register j come to hold bytes
// 2 * j and 2 * j + 1 of the upper rows, words 2 and 3 those of the lower ones.
struct Avx2 {
  typedef u64 Words __attribute__((vector_size(32)));
  static constexpr int kRows = 128;

  static void load(const u64* rows, i64 stride, int r, Words& v) {
    v = reinterpret_cast<Words>(
        _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(rows + (r + 64) * stride),
                            reinterpret_cast<const __m128i*>(rows + r * stride)));
  }
  static void gather(Words (&v)[8]) {
    for (int level = 0; level < 3; ++level) {
      Words w[8];
      for (int i = 0; i < 4; ++i) {
        const auto a = reinterpret_cast<__m256i>(v[i]), b = reinterpret_cast<__m256i>(v[i + 4]);
        w[2 * i] = reinterpret_cast<Words>(_mm256_unpacklo_epi8(a, b));
        w[2 * i + 1] = reinterpret_cast<Words>(_mm256_unpackhi_epi8(a, b));
      }
      for (int i = 0; i < 8; ++i) v[i] = w[i];
    }
  }
  static void store(const Words& v, int j, int bit, u64* out) {
    u64* column = out + 2 * (16 * j + bit);
    _mm256_storeu2_m128i(reinterpret_cast<__m128i*>(column + 16),
                         reinterpret_cast<__m128i*>(column),
                         _mm256_permute4x64_epi64(reinterpret_cast<__m256i>(v), 0xd8));
  }
};

}  // namespace

void transpose_128_rows_avx2(const u64* rows, i64 stride, i64 blocks, u64* out) {
  transpose_all<Avx2>(rows, stride, blocks, out);
}

}  // namespace privml
#endif
