// SPDX-License-Identifier: Apache-2.0
// AES-128 on batches of blocks (FIPS 197), with the widest instructions the machine has.
#pragma once

#include <array>

#include "crypto/block.h"

namespace privml::crypto {

// As CpuLevel has them; `avx2` is AES-NI in the encodings that came with AVX, which take operands
// from memory at any place and leave both in their registers. `neon` is for 64-bit Arm with its AES
// instructions, the others but `portable` for x86-64.
enum class AesBackend { portable, neon, aesni, avx2, vaes256, vaes512 };
inline constexpr AesBackend kAesBackends[] = {AesBackend::portable, AesBackend::neon,
                                              AesBackend::aesni,    AesBackend::avx2,
                                              AesBackend::vaes256,  AesBackend::vaes512};

// The fastest backend this machine supports within cpu_limit(), and whether it supports a given
// one.
AesBackend best_aes_backend();
bool aes_backend_supported(AesBackend backend);
const char* aes_backend_name(AesBackend backend);

class Aes128 {
 public:
  // Bytes of `key` in memory order are the key bytes of FIPS 197.
  // Throws InvalidArgument if this machine does not support `backend`.
  explicit Aes128(Block key, AesBackend backend = best_aes_backend());
  Aes128(const Aes128&) = default;
  Aes128& operator=(const Aes128&) = default;
  ~Aes128();  // wipes the round keys

  // out[i] = AES_key(in[i]); `in` and `out` may be the same array. Constant time in every backend.
  void encrypt(const Block* in, Block* out, i64 count) const;
  // out[i] = AES_key(first + i) with a 128-bit little-endian counter (lo carries into hi).
  void encrypt_counter(Block first, Block* out, i64 count) const;
  // out[i] = AES_key(in[i]) ^ in[i] (Matyas-Meyer-Oseas without key change).
  void encrypt_feedforward(const Block* in, Block* out, i64 count) const;
  // The 11 round keys of FIPS 197 in order, whatever the backend; for kernels of several keys.
  const Block* round_keys() const { return round_keys_.data(); }
  AesBackend backend() const { return backend_; }

 private:
  std::array<Block, 11> round_keys_;
  AesBackend backend_;
};

}  // namespace privml::crypto
