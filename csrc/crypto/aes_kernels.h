// SPDX-License-Identifier: Apache-2.0
// What each instruction set contributes to Aes128. `keys` are the 11 round keys of FIPS 197. The
// kernels `neon` exist on 64-bit Arm only, the other ones of hardware on x86-64 only; call one only
// if the processor supports it.
#pragma once

#include "crypto/block.h"

namespace privml::crypto::aes {

// Fills the 11 round keys.
void expand_key_portable(Block key, Block* keys);
void expand_key_neon(Block key, Block* keys);
void expand_key_aesni(Block key, Block* keys);

// out[i] = AES(in[i]), ^ in[i] with `feedforward`; `in` and `out` may be the same array. The wide
// VAES kernels do whole groups only; every kernel returns how many blocks it has done.
i64 encrypt_portable(const Block* keys, const Block* in, Block* out, i64 count, bool feedforward);
i64 encrypt_neon(const Block* keys, const Block* in, Block* out, i64 count, bool feedforward);
i64 encrypt_aesni(const Block* keys, const Block* in, Block* out, i64 count, bool feedforward);
i64 encrypt_avx2(const Block* keys, const Block* in, Block* out, i64 count, bool feedforward);
i64 encrypt_vaes256(const Block* keys, const Block* in, Block* out, i64 count, bool feedforward);
i64 encrypt_vaes512(const Block* keys, const Block* in, Block* out, i64 count, bool feedforward);

// out[i] = AES(first + i) for whole groups; first.lo + count must not overflow.
i64 count_neon(const Block* keys, Block first, Block* out, i64 count);
i64 count_aesni(const Block* keys, Block first, Block* out, i64 count);
i64 count_avx2(const Block* keys, Block first, Block* out, i64 count);
i64 count_vaes256(const Block* keys, Block first, Block* out, i64 count);
i64 count_vaes512(const Block* keys, Block first, Block* out, i64 count);

}  // namespace privml::crypto::aes
