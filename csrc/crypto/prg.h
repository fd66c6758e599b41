// SPDX-License-Identifier: Apache-2.0
// Pseudo-random generator: AES-128 in counter mode (NIST SP 800-90A CTR without derivation
// function).
#pragma once

#include "crypto/aes.h"

namespace privml::crypto {

class Prg {
 public:
  explicit Prg(Block seed);

  void fill_blocks(Block* out, i64 count);
  void fill_bytes(MutableBytes out);
  // Uniform values of `bits` bits, one per word (upper bits zero).
  void fill_ring(std::span<u64> out, int bits);
  // Uniform bits, one per byte (0 or 1).
  void fill_bits(std::span<u8> out);
  Block next_block();

 private:
  Aes128 aes_;
  Block counter_{};
};

// A block from the operating system's secure random source (libsodium randombytes).
Block os_random_block();

}  // namespace privml::crypto
