// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#include <immintrin.h>

#include "crypto/aes_kernels.h"
#include "crypto/aes_wide.h"

namespace privml::aes {
namespace {

struct Wide256 {
  using Register = __m256i;
  static constexpr int kBlocks = 2;
  static Register load(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
  }
  static Register broadcast(const void* from) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(from)));
  }
  static void store(Block* to, Register x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x);
  }
  static Register exclusive_or(Register a, Register b) { return _mm256_xor_si256(a, b); }
  static Register add(Register a, Register b) { return _mm256_add_epi64(a, b); }
  static Register round(Register s, Register key) { return _mm256_aesenc_epi128(s, key); }
  static Register last_round(Register s, Register key) { return _mm256_aesenclast_epi128(s, key); }
};

}  // namespace

i64 encrypt_vaes256(const Block* keys, const Block* in, Block* out, i64 count, bool feedforward) {
  return encrypt_groups<Wide256>(keys, in, out, count, feedforward);
}

i64 count_vaes256(const Block* keys, Block first, Block* out, i64 count) {
  return count_groups<Wide256>(keys, first, out, count);
}

}  // namespace privml::aes
#endif
