// SPDX-License-Identifier: Apache-2.0
// For tests against dishonest peers: a channel that does to one chosen message of a party what a
// network or a cheat could do. A message is everything written between two reads.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "crypto/prg.h"
#include "net/channel.h"

namespace privml::testing {

enum class Alteration {
  none,
  first_bit,  // flipped
  inner_bit,  // flipped, somewhere
  add_one,    // to every word of 64 bits, as a biased generator would
  zeros,      // in place of everything
  noise,      // random bytes in place of everything
  replay,     // an earlier message of the same length in its place, else its own first half twice
  exchange,   // its halves exchanged
  reorder,    // sent after the next message
  repeat,     // sent twice
  truncate,   // its last byte missing
  withhold,   // not sent, and nothing after it
};

inline constexpr std::array kAlterations{
    Alteration::first_bit, Alteration::inner_bit, Alteration::add_one,  Alteration::zeros,
    Alteration::noise,     Alteration::replay,    Alteration::exchange, Alteration::reorder,
    Alteration::repeat,    Alteration::truncate,  Alteration::withhold};

inline const char* name_of(Alteration alteration) {
  constexpr std::array names{"nothing",
                             "first bit flipped",
                             "inner bit flipped",
                             "words plus one",
                             "zeros",
                             "noise",
                             "replayed",
                             "halves exchanged",
                             "reordered",
                             "sent twice",
                             "last byte missing",
                             "withheld"};
  return names[static_cast<int>(alteration)];
}

// Whether a peer may have to wait for its deadline to notice.
inline bool may_stall(Alteration alteration) {
  return alteration == Alteration::reorder || alteration == Alteration::truncate ||
         alteration == Alteration::withhold;
}

class AlteringChannel final : public Channel {
 public:
  AlteringChannel(std::unique_ptr<Channel> inner, i64 message, Alteration alteration)
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
  Traffic traffic() const override { return inner_->traffic(); }
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
    const i64 size = std::ssize(message), half = size / 2;
    switch (alteration_) {
      case Alteration::none:
        return;
      case Alteration::first_bit:
        message[0] ^= 1;
        return;
      case Alteration::inner_bit: {
        const i64 bit = (message_ * 977 + 331) % (8 * size);
        message[bit / 8] ^= static_cast<u8>(1 << bit % 8);
        return;
      }
      case Alteration::add_one:
        for (i64 i = 0; i < size; i += 8) {
          for (i64 j = i; j < std::min(i + 8, size) && ++message[j] == 0; ++j) {
          }
        }
        return;
      case Alteration::zeros:
        std::fill(message.begin(), message.end(), u8{0});
        return;
      case Alteration::noise:
        Prg({static_cast<u64>(message_), 0x6e6f697365}).fill_bytes(message);
        return;
      case Alteration::replay:
        for (auto earlier = sent_.rbegin(); earlier != sent_.rend(); ++earlier) {
          if (earlier->size() == message.size() && *earlier != message) {
            message = *earlier;
            return;
          }
        }
        std::copy(message.begin(), message.begin() + half, message.begin() + half);
        return;
      case Alteration::exchange:
        std::rotate(message.begin(), message.begin() + half, message.end());
        return;
      case Alteration::reorder:
        held_ = std::exchange(message, {});
        return;
      case Alteration::repeat:
        message.insert(message.end(), message.begin(), message.begin() + size);
        return;
      case Alteration::truncate:
        message.pop_back();
        return;
      case Alteration::withhold:
        message.clear();
        silent_ = true;
    }
  }

  std::unique_ptr<Channel> inner_;
  i64 message_;
  Alteration alteration_;
  std::string part_;
  std::vector<std::string> parts_;  // of every message
  std::vector<u8> pending_, held_;
  std::vector<std::vector<u8>> sent_;
  bool silent_ = false, altered_ = false;
};

}  // namespace privml::testing
