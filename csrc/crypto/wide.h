// SPDX-License-Identifier: Apache-2.0
// Registers of one, two or four blocks of x86-64, and of one block of 64-bit Arm, for files that
// are compiled for one instruction set each: those that the file is compiled for are defined. Such
// a file may use only what is inlined or in its unnamed namespace: a shared inline function
// compiled here could be the one that the linker keeps for machines without these instructions.
//
// A register type `Wide` names its instructions; `equal` is all ones in the 64-bit words that are
// equal, `orthomorphism` maps each block (lo, hi) to (hi, hi ^ lo), `counters` is first, first + 1,
// ... in blocks' lower words, `scale` is the upper half of each 32-bit word's product with
// `factor`, which stands in the lower half of every 64-bit word.
#pragma once

#if defined(__x86_64__)
#if defined(__AVX512F__)
// g++ 12 reports its own AVX-512 headers.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include "crypto/block.h"

namespace privml::crypto {
namespace {

#if defined(__AES__) && defined(__SSE4_1__)
struct Wide128 {
  using Register = __m128i;
  static constexpr int kBlocks = 1;
  static Register load(const void* from) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
  }
  static Register broadcast(const void* from) { return load(from); }
  static Register zero() { return _mm_setzero_si128(); }
  static void store(void* to, Register x) { _mm_storeu_si128(static_cast<__m128i*>(to), x); }
  static Register exclusive_or(Register a, Register b) { return _mm_xor_si128(a, b); }
  static Register both(Register a, Register b) { return _mm_and_si128(a, b); }
  static Register add(Register a, Register b) { return _mm_add_epi64(a, b); }
  static Register equal(Register a, Register b) { return _mm_cmpeq_epi64(a, b); }
  static Register orthomorphism(Register x) {
    return _mm_xor_si128(_mm_shuffle_epi32(x, 0xee), _mm_slli_si128(x, 8));
  }
  static Register counters(u64 first) { return _mm_set_epi64x(0, static_cast<long long>(first)); }
  static Register scale(Register words, Register factor) {
    const Register even = _mm_srli_epi64(_mm_mul_epu32(words, factor), 32);
    const Register odd = _mm_mul_epu32(_mm_srli_epi64(words, 32), factor);
    return _mm_blend_epi16(even, odd, 0xcc);
  }
  template <int bits>
  static Register shift_words(Register words) {
    return _mm_slli_epi32(words, bits);
  }
  static Register round(Register s, Register key) { return _mm_aesenc_si128(s, key); }
  static Register last_round(Register s, Register key) { return _mm_aesenclast_si128(s, key); }
};
#endif

#if defined(__VAES__) && defined(__AVX2__)
struct Wide256 {
  using Register = __m256i;
  static constexpr int kBlocks = 2;
  static Register load(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
  }
  static Register broadcast(const void* from) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(from)));
  }
  static Register zero() { return _mm256_setzero_si256(); }
  static void store(void* to, Register x) { _mm256_storeu_si256(static_cast<__m256i*>(to), x); }
  static Register exclusive_or(Register a, Register b) { return _mm256_xor_si256(a, b); }
  static Register both(Register a, Register b) { return _mm256_and_si256(a, b); }
  static Register add(Register a, Register b) { return _mm256_add_epi64(a, b); }
  static Register equal(Register a, Register b) { return _mm256_cmpeq_epi64(a, b); }
  static Register orthomorphism(Register x) {
    return _mm256_xor_si256(_mm256_shuffle_epi32(x, 0xee), _mm256_slli_si256(x, 8));
  }
  static Register counters(u64 first) {
    const auto n = static_cast<long long>(first);
    return _mm256_set_epi64x(0, n + 1, 0, n);
  }
  static Register scale(Register words, Register factor) {
    const Register even = _mm256_srli_epi64(_mm256_mul_epu32(words, factor), 32);
    const Register odd = _mm256_mul_epu32(_mm256_srli_epi64(words, 32), factor);
    return _mm256_blend_epi32(even, odd, 0xaa);
  }
  template <int bits>
  static Register shift_words(Register words) {
    return _mm256_slli_epi32(words, bits);
  }
  static Register round(Register s, Register key) { return _mm256_aesenc_epi128(s, key); }
  static Register last_round(Register s, Register key) { return _mm256_aesenclast_epi128(s, key); }
};
#endif

#if defined(__VAES__) && defined(__AVX512F__)
struct Wide512 {
  using Register = __m512i;
  static constexpr int kBlocks = 4;
  static Register load(const void* from) { return _mm512_loadu_si512(from); }
  static Register broadcast(const void* from) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(static_cast<const __m128i*>(from)));
  }
  static Register zero() { return _mm512_setzero_si512(); }
  static void store(void* to, Register x) { _mm512_storeu_si512(to, x); }
  static Register exclusive_or(Register a, Register b) { return _mm512_xor_si512(a, b); }
  static Register both(Register a, Register b) { return _mm512_and_si512(a, b); }
  static Register add(Register a, Register b) { return _mm512_add_epi64(a, b); }
  static Register equal(Register a, Register b) {
    return _mm512_maskz_set1_epi64(_mm512_cmpeq_epi64_mask(a, b), -1);
  }
  static Register orthomorphism(Register x) {
    constexpr __mmask16 kUpperHalves = 0xcccc;
    return _mm512_xor_si512(_mm512_shuffle_epi32(x, _MM_PERM_DCDC),
                            _mm512_maskz_shuffle_epi32(kUpperHalves, x, _MM_PERM_BABA));
  }
  static Register counters(u64 first) {
    constexpr __mmask8 kLowerWords = 0x55;
    return _mm512_add_epi64(_mm512_maskz_set1_epi64(kLowerWords, static_cast<long long>(first)),
                            _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0));
  }
  static Register scale(Register words, Register factor) {
    const Register even = _mm512_srli_epi64(_mm512_mul_epu32(words, factor), 32);
    const Register odd = _mm512_mul_epu32(_mm512_srli_epi64(words, 32), factor);
    return _mm512_mask_blend_epi32(0xaaaa, even, odd);
  }
  template <int bits>
  static Register shift_words(Register words) {
    return _mm512_slli_epi32(words, bits);
  }
  static Register round(Register s, Register key) { return _mm512_aesenc_epi128(s, key); }
  static Register last_round(Register s, Register key) { return _mm512_aesenclast_epi128(s, key); }
};
#endif

}  // namespace
}  // namespace privml::crypto
#endif

#if defined(__aarch64__) && defined(__ARM_FEATURE_AES)
#include <arm_neon.h>

#include "crypto/block.h"

namespace privml::crypto {
namespace {

struct Wide128 {
  using Register = uint8x16_t;
  static constexpr int kBlocks = 1;
  static Register load(const void* from) { return vld1q_u8(static_cast<const uint8_t*>(from)); }
  static Register broadcast(const void* from) { return load(from); }
  static Register zero() { return vdupq_n_u8(0); }
  static void store(void* to, Register x) { vst1q_u8(static_cast<uint8_t*>(to), x); }
  static Register exclusive_or(Register a, Register b) { return veorq_u8(a, b); }
  static Register both(Register a, Register b) { return vandq_u8(a, b); }
  static Register add(Register a, Register b) {
    return vreinterpretq_u8_u64(vaddq_u64(vreinterpretq_u64_u8(a), vreinterpretq_u64_u8(b)));
  }
  static Register equal(Register a, Register b) {
    return vreinterpretq_u8_u64(vceqq_u64(vreinterpretq_u64_u8(a), vreinterpretq_u64_u8(b)));
  }
  static Register orthomorphism(Register x) {
    const uint64x2_t words = vreinterpretq_u64_u8(x);
    return veorq_u8(vreinterpretq_u8_u64(vdupq_laneq_u64(words, 1)), vextq_u8(zero(), x, 8));
  }
  static Register counters(u64 first) {
    return vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(first), vcreate_u64(0)));
  }
  static Register scale(Register words, Register factor) {
    const uint32x4_t w = vreinterpretq_u32_u8(words);
    const uint32x2_t f = vget_low_u32(vreinterpretq_u32_u8(factor));
    return vreinterpretq_u8_u32(
        vcombine_u32(vshrn_n_u64(vmull_lane_u32(vget_low_u32(w), f, 0), 32),
                     vshrn_n_u64(vmull_lane_u32(vget_high_u32(w), f, 0), 32)));
  }
  template <int bits>
  static Register shift_words(Register words) {
    return vreinterpretq_u8_u32(vshlq_n_u32(vreinterpretq_u32_u8(words), bits));
  }
  // Arm's instruction adds the key before the S-box, these add it last.
  static Register round(Register s, Register key) {
    return veorq_u8(vaesmcq_u8(vaeseq_u8(s, zero())), key);
  }
  static Register last_round(Register s, Register key) {
    return veorq_u8(vaeseq_u8(s, zero()), key);
  }
};

}  // namespace
}  // namespace privml::crypto
#endif
