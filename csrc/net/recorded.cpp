// SPDX-License-Identifier: Apache-2.0
#include "net/recorded.h"

#include <sodium.h>

namespace privml::net {
namespace {

std::string finish(crypto_hash_sha256_state state) {
  u8 digest[crypto_hash_sha256_BYTES];
  char text[2 * crypto_hash_sha256_BYTES + 1];
  crypto_hash_sha256_final(&state, digest);
  sodium_bin2hex(text, sizeof text, digest, sizeof digest);
  return text;
}

}  // namespace

struct RecordedChannel::Hashes {
  crypto_hash_sha256_state sent;
  crypto_hash_sha256_state received;
};

RecordedChannel::RecordedChannel(std::unique_ptr<Channel> inner)
    : inner_(std::move(inner)), hashes_(std::make_unique<Hashes>()) {
  crypto_hash_sha256_init(&hashes_->sent);
  crypto_hash_sha256_init(&hashes_->received);
}

RecordedChannel::~RecordedChannel() = default;

void RecordedChannel::write(Bytes bytes) {
  crypto_hash_sha256_update(&hashes_->sent, bytes.data(), bytes.size());
  inner_->write(bytes);
}

void RecordedChannel::read(MutableBytes bytes) {
  inner_->read(bytes);
  crypto_hash_sha256_update(&hashes_->received, bytes.data(), bytes.size());
}

std::string RecordedChannel::sent_hash() const { return finish(hashes_->sent); }
std::string RecordedChannel::received_hash() const { return finish(hashes_->received); }

}  // namespace privml::net
