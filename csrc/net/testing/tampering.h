// SPDX-License-Identifier: Apache-2.0
// For tests of protocols against dishonest peers: a channel that flips one chosen bit of one chosen
// message on its way out.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "net/channel.h"

namespace privml::net::testing {

// Everything that a party writes between two of its reads is one message; messages are numbered
// from 0, bits of a message from its first byte's least significant one.
struct Flip {
  i64 message = 0;
  i64 bit = 0;
};

class TamperingChannel final : public Channel {
 public:
  // Without a flip it only measures the messages.
  explicit TamperingChannel(std::unique_ptr<Channel> inner, std::optional<Flip> flip = {})
      : inner_(std::move(inner)), flip_(flip) {}

  void write(Bytes bytes) override {
    if (bytes.empty()) return;
    if (reading_) message_bytes_.push_back(0);
    reading_ = false;
    i64& size = message_bytes_.back();
    const i64 at = flip_ ? flip_->bit / 8 - size : -1;
    size += std::ssize(bytes);
    if (flip_ && flip_->message == std::ssize(message_bytes_) - 1 && 0 <= at &&
        at < std::ssize(bytes)) {
      std::vector<u8> changed(bytes.begin(), bytes.end());
      changed[at] ^= static_cast<u8>(1 << flip_->bit % 8);
      flipped_ = true;
      inner_->write(changed);
    } else {
      inner_->write(bytes);
    }
  }
  void read(MutableBytes bytes) override {
    inner_->read(bytes);
    if (!bytes.empty()) reading_ = true;
  }
  void flush() override { inner_->flush(); }
  Traffic traffic() const override { return inner_->traffic(); }
  void set_depth(i64 depth) override { inner_->set_depth(depth); }
  void set_deadline(std::chrono::milliseconds deadline) override { inner_->set_deadline(deadline); }
  void close() override { inner_->close(); }
  std::string peer_name() const override { return inner_->peer_name(); }
  CertifiedNames names() const override { return inner_->names(); }
  bool peer_closed() const override { return inner_->peer_closed(); }

  // The size of every message written so far, and whether the flip has happened: a test that flips
  // nothing proves nothing.
  const std::vector<i64>& message_bytes() const { return message_bytes_; }
  bool flipped() const { return flipped_; }

 private:
  std::unique_ptr<Channel> inner_;
  std::optional<Flip> flip_;
  std::vector<i64> message_bytes_;
  bool reading_ = true;
  bool flipped_ = false;
};

}  // namespace privml::net::testing
