// SPDX-License-Identifier: Apache-2.0
#if defined(__aarch64__)
#include <arm_neon.h>

#include <bit>

#include "crypto/aes_kernels.h"
#include "crypto/aes_wide.h"
#include "crypto/wide.h"

namespace privml::crypto::aes {
namespace {

// The S-box on each byte of a word: in a state of four equal columns, ShiftRows changes nothing.
u32 substitute(u32 word) {
  const uint8x16_t state = vreinterpretq_u8_u32(vdupq_n_u32(word));
  return vgetq_lane_u32(vreinterpretq_u32_u8(vaeseq_u8(state, vdupq_n_u8(0))), 0);
}

}  // namespace

// FIPS 197, section 5.2, on words whose lowest byte is the first.
void expand_key_neon(Block key, Block* keys) {
  constexpr u32 kRoundConstants[] = {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36};
  u32 a = static_cast<u32>(key.lo), b = static_cast<u32>(key.lo >> 32);
  u32 c = static_cast<u32>(key.hi), d = static_cast<u32>(key.hi >> 32);
  keys[0] = key;
  for (int round = 0; round < 10; ++round) {
    a ^= std::rotr(substitute(d), 8) ^ kRoundConstants[round];
    b ^= a;
    c ^= b;
    d ^= c;
    keys[round + 1] = {u64{b} << 32 | a, u64{d} << 32 | c};
  }
}

i64 encrypt_neon(const Block* keys, const Block* in, Block* out, i64 count, bool feedforward) {
  return encrypt_all<Wide128>(keys, in, out, count, feedforward);
}

i64 count_neon(const Block* keys, Block first, Block* out, i64 count) {
  return count_groups<Wide128>(keys, first, out, count);
}

}  // namespace privml::crypto::aes
#endif
