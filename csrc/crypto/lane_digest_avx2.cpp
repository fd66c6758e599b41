// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#include <immintrin.h>

#include "crypto/lane_digest_wide.h"

namespace privml::crypto::lanes {
namespace {

struct Avx2 {
  typedef u64 Words __attribute__((vector_size(32)));
  static constexpr int kTogether = 2;
  static Words all(u64 x) { return Words{} + x; }
  template <int bits>
  static Words rotate(Words x) {
    const auto v = reinterpret_cast<__m256i>(x);
    if constexpr (bits == 32) return reinterpret_cast<Words>(_mm256_shuffle_epi32(v, 0xb1));
    if constexpr (bits % 8 == 0) {
      // Byte i of a word comes from byte i + bits / 8.
      constexpr long long kWord = bits == 24 ? 0x0201000706050403 : 0x0100070605040302;
      const __m256i places =
          _mm256_set_epi64x(kWord + 0x0808080808080808, kWord, kWord + 0x0808080808080808, kWord);
      return reinterpret_cast<Words>(_mm256_shuffle_epi8(v, places));
    }
    return x >> bits | x << (64 - bits);
  }
};

}  // namespace

void compress_avx2(u64* state, const u8* message, i64 groups, u64 counter, bool last) {
  compress_all<Avx2>(state, message, groups, counter, last);
}

}  // namespace privml::crypto::lanes
#endif
