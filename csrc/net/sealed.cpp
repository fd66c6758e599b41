// SPDX-License-Identifier: Apache-2.0
#include "net/sealed.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/wipe.h"

namespace privml::net {
namespace {

EVP_CIPHER_CTX* context(const std::shared_ptr<void>& cipher) {
  return static_cast<EVP_CIPHER_CTX*>(cipher.get());
}

void must(bool done) {
  if (!done) throw std::runtime_error("AES-256-GCM of OpenSSL does not work");
}

int length(Bytes bytes) { return static_cast<int>(bytes.size()); }

}  // namespace

SealedMessages::SealedMessages(std::shared_ptr<Channel> channel, Bytes key)
    : channel_(std::move(channel)),
      cipher_(EVP_CIPHER_CTX_new(),
              [](void* made) { EVP_CIPHER_CTX_free(static_cast<EVP_CIPHER_CTX*>(made)); }),
      sealed_(kPieceBytes + kTagBytes) {
  expect(key.size() == kKeyBytes, "key: needs 32 bytes");
  must(cipher_ != nullptr && EVP_CipherInit_ex(context(cipher_), EVP_aes_256_gcm(), nullptr,
                                               key.data(), nullptr, 1) == 1);
}

SealedMessages::Nonce SealedMessages::next_nonce() {
  Nonce nonce{};
  const u64 number = pieces_++;
  std::memcpy(nonce.data(), &number, sizeof number);
  return nonce;
}

void SealedMessages::send(Bytes message) {
  EVP_CIPHER_CTX* const cipher = context(cipher_);
  while (!message.empty()) {
    const Bytes piece = message.first(std::min(message.size(), kPieceBytes));
    const Nonce nonce = next_nonce();
    u8* const tag = sealed_.data() + piece.size();
    int n = 0;
    must(EVP_EncryptInit_ex(cipher, nullptr, nullptr, nullptr, nonce.data()) == 1 &&
         EVP_EncryptUpdate(cipher, sealed_.data(), &n, piece.data(), length(piece)) == 1 &&
         EVP_EncryptFinal_ex(cipher, tag, &n) == 1 &&
         EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_GET_TAG, kTagBytes, tag) == 1);
    channel_->write({sealed_.data(), piece.size() + kTagBytes});
    message = message.subspan(piece.size());
  }
  channel_->flush();
}

void SealedMessages::receive(MutableBytes message) {
  EVP_CIPHER_CTX* const cipher = context(cipher_);
  MutableBytes rest = message;
  while (!rest.empty()) {
    const MutableBytes piece = rest.first(std::min(rest.size(), kPieceBytes));
    const Nonce nonce = next_nonce();
    u8 tag[kTagBytes];
    channel_->read(piece);
    channel_->read(tag);
    int n = 0;
    must(EVP_DecryptInit_ex(cipher, nullptr, nullptr, nullptr, nonce.data()) == 1 &&
         EVP_DecryptUpdate(cipher, piece.data(), &n, piece.data(), length(piece)) == 1 &&
         EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_SET_TAG, kTagBytes, tag) == 1);
    if (u8 nothing = 0; EVP_DecryptFinal_ex(cipher, &nothing, &n) != 1) {
      wipe(message.data(), message.size());
      channel_->close();
      throw SecurityAbort(
          "what arrived is not what the peer has sent: somebody changed it on its way");
    }
    rest = rest.subspan(piece.size());
  }
}

}  // namespace privml::net
