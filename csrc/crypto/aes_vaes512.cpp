// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#include <immintrin.h>

#include "crypto/aes_kernels.h"
#include "crypto/aes_wide.h"

// g++ 12 reports its own AVX-512 headers here.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace privml::aes {
namespace {

struct Wide512 {
  using Register = __m512i;
  static constexpr int kBlocks = 4;
  static Register load(const void* from) { return _mm512_loadu_si512(from); }
  static Register broadcast(const void* from) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(static_cast<const __m128i*>(from)));
  }
  static void store(Block* to, Register x) { _mm512_storeu_si512(to, x); }
  static Register exclusive_or(Register a, Register b) { return _mm512_xor_si512(a, b); }
  static Register add(Register a, Register b) { return _mm512_add_epi64(a, b); }
  static Register round(Register s, Register key) { return _mm512_aesenc_epi128(s, key); }
  static Register last_round(Register s, Register key) { return _mm512_aesenclast_epi128(s, key); }
};

}  // namespace

i64 encrypt_vaes512(const Block* keys, const Block* in, Block* out, i64 count, bool feedforward) {
  return encrypt_groups<Wide512>(keys, in, out, count, feedforward);
}

i64 count_vaes512(const Block* keys, Block first, Block* out, i64 count) {
  return count_groups<Wide512>(keys, first, out, count);
}

}  // namespace privml::aes
#endif
