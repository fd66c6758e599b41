// SPDX-License-Identifier: Apache-2.0
#include "crypto/seal.h"

#include <sodium.h>

#include <algorithm>

#include "base/error.h"
#include "base/wipe.h"

namespace privml::crypto {
namespace {

constexpr i64 kNonce = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES;
static_assert(crypto_aead_xchacha20poly1305_ietf_KEYBYTES == Seal::kKeyBytes);
static_assert(kNonce + crypto_aead_xchacha20poly1305_ietf_ABYTES == Seal::kOverhead);

}  // namespace

Seal::Seal(Bytes key, Bytes salt) {
  expect(std::ssize(key) == kKeyBytes, "Seal: the key must have 32 bytes");
  expect(std::ssize(salt) >= 16 && std::ssize(salt) <= 64, "Seal: the salt needs 16 to 64 bytes");
  expect(sodium_init() >= 0, "libsodium could not be initialised");
  crypto_generichash(key_.data(), key_.size(), salt.data(), salt.size(), key.data(), key.size());
}

Seal::~Seal() { wipe(key_.data(), key_.size()); }

std::vector<u8> Seal::seal(Bytes plain, Bytes context) const {
  std::vector<u8> sealed(plain.size() + kOverhead);
  randombytes_buf(sealed.data(), kNonce);
  crypto_aead_xchacha20poly1305_ietf_encrypt(sealed.data() + kNonce, nullptr, plain.data(),
                                             plain.size(), context.data(), context.size(), nullptr,
                                             sealed.data(), key_.data());
  return sealed;
}

bool Seal::open(Bytes sealed, Bytes context, MutableBytes plain) const {
  const i64 size = std::ssize(sealed) - kOverhead;
  if (size >= 0 && size == std::ssize(plain)) {
    const Bytes body = sealed.subspan(kNonce);
    if (crypto_aead_xchacha20poly1305_ietf_decrypt(plain.data(), nullptr, nullptr, body.data(),
                                                   body.size(), context.data(), context.size(),
                                                   sealed.data(), key_.data()) == 0) {
      return true;
    }
  }
  std::fill(plain.begin(), plain.end(), u8{0});
  return false;
}

}  // namespace privml::crypto
