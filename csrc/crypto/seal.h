// SPDX-License-Identifier: Apache-2.0
// Authenticated encryption of data that leaves memory.
//
// Functionality  seal() gives bytes that only open() with the same key, salt and context turns
//                back; the context (what the bytes are and where they belong) is authenticated and
//                not stored. Format: 24 bytes of random nonce, ciphertext, 16 bytes of tag.
// Leakage        the length of the plaintext.
// Assumption     XChaCha20-Poly1305 (libsodium) and keyed BLAKE2b as a key derivation. Nonces of
//                192 random bits do not repeat.
#pragma once

#include <array>
#include <vector>

#include "base/types.h"

namespace privml::crypto {

class Seal {
 public:
  static constexpr i64 kKeyBytes = 32;
  static constexpr i64 kOverhead = 24 + 16;

  // A key of its own for every salt. `key` has kKeyBytes, `salt` 16 to 64 bytes.
  Seal(Bytes key, Bytes salt);
  Seal(const Seal&) = delete;
  ~Seal();

  std::vector<u8> seal(Bytes plain, Bytes context) const;
  // Fills `plain` (sealed.size() - kOverhead bytes); false, and zeros, if anything differs.
  [[nodiscard]] bool open(Bytes sealed, Bytes context, MutableBytes plain) const;

 private:
  std::array<u8, kKeyBytes> key_;
};

}  // namespace privml::crypto
