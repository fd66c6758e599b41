// SPDX-License-Identifier: Apache-2.0
// For tests against dishonest peers: a channel that alters one chosen message of a party. A message
// is everything written between two reads.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/channel.h"
#include "spdz2k/testing/alteration.h"

namespace privml::spdz2k::testing {

class AlteringChannel final : public net::Channel {
 public:
  AlteringChannel(std::unique_ptr<net::Channel> inner, i64 message, Alteration alteration)
      : inner_(std::move(inner)), message_(message), alteration_(alteration) {}

  void write(Bytes bytes) override { pending_.insert(pending_.end(), bytes.begin(), bytes.end()); }
  void read(MutableBytes bytes) override {
    if (bytes.empty()) return;
    finish_message();
    inner_->read(bytes);
  }
  void flush() override {
    finish_message();
    inner_->flush();
  }
  net::Traffic traffic() const override { return inner_->traffic(); }
  void set_depth(i64 depth) override {
    finish_message();
    inner_->set_depth(depth);
  }
  void set_deadline(std::chrono::milliseconds deadline) override { inner_->set_deadline(deadline); }
  void close() override { inner_->close(); }

  // Names what follows; kept for every message.
  void begin(const std::string& part) { part_ = part; }
  const std::vector<std::string>& parts() const { return parts_; }
  bool altered() const { return altered_; }

 private:
  void finish_message() {
    if (pending_.empty()) return;
    std::vector<u8> message = std::move(pending_);
    pending_.clear();
    const i64 number = std::ssize(parts_);
    parts_.push_back(part_);
    if (silent_) return;
    if (number == message_) {
      const std::vector<u8> before = message;
      alter(message);
      altered_ |= message != before || silent_ || !held_.empty();
    }
    inner_->write(message);
    if (!held_.empty() && number > message_) {
      inner_->write(held_);
      held_.clear();
    }
    if (number < message_) sent_.push_back(std::move(message));
  }

  void alter(std::vector<u8>& message) {
    alter_bytes(alteration_, message_, sent_, message);
    if (alteration_ == Alteration::reorder) held_ = std::exchange(message, {});
    if (alteration_ == Alteration::withhold) {
      message.clear();
      silent_ = true;
    }
  }

  std::unique_ptr<net::Channel> inner_;
  i64 message_;
  Alteration alteration_;
  std::string part_;
  std::vector<std::string> parts_;  // of every message
  std::vector<u8> pending_, held_;
  std::vector<std::vector<u8>> sent_;
  bool silent_ = false, altered_ = false;
};

}  // namespace privml::spdz2k::testing
