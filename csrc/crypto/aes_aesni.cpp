// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#include <immintrin.h>

#include "crypto/aes_kernels.h"
#include "crypto/aes_wide.h"
#include "crypto/wide.h"

namespace privml::crypto::aes {
namespace {

// The next round key from the last one (FIPS 197, section 5.2).
template <int RoundConstant>
void next_round_key(Block* keys) {
  __m128i key = Wide128::load(keys);
  const __m128i word = _mm_shuffle_epi32(_mm_aeskeygenassist_si128(key, RoundConstant), 0xff);
  key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
  key = _mm_xor_si128(key, _mm_slli_si128(key, 8));
  Wide128::store(keys + 1, _mm_xor_si128(key, word));
}

}  // namespace

void expand_key_aesni(Block key, Block* keys) {
  keys[0] = key;
  next_round_key<0x01>(keys);
  next_round_key<0x02>(keys + 1);
  next_round_key<0x04>(keys + 2);
  next_round_key<0x08>(keys + 3);
  next_round_key<0x10>(keys + 4);
  next_round_key<0x20>(keys + 5);
  next_round_key<0x40>(keys + 6);
  next_round_key<0x80>(keys + 7);
  next_round_key<0x1b>(keys + 8);
  next_round_key<0x36>(keys + 9);
}

i64 encrypt_aesni(const Block* keys, const Block* in, Block* out, i64 count, bool feedforward) {
  return encrypt_all<Wide128>(keys, in, out, count, feedforward);
}

i64 count_aesni(const Block* keys, Block first, Block* out, i64 count) {
  return count_groups<Wide128>(keys, first, out, count);
}

}  // namespace privml::crypto::aes
#endif
