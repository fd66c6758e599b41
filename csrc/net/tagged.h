// SPDX-License-Identifier: Apache-2.0
// Tags of what a session computes: every frame carries the sender's, and a party that reads a frame
// under another one than its own learns that the two compute different things.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "base/types.h"

namespace privml::net {

class Channel;

// What a party has computed lately, one line for each step, which its peer receives if the two
// differ. The oldest lines are dropped, so that all fit into one frame. Any thread may call.
class Account {
 public:
  Account(int rank, int peer) : rank_(rank), peer_(peer) {}
  int rank() const { return rank_; }
  int peer() const { return peer_; }
  // Throws InvalidArgument for a line that is longer than 256 bytes.
  void add(std::string line);
  // The lines from the oldest on, each with a newline at its end.
  std::string text() const;

 private:
  int rank_, peer_;
  mutable std::mutex mutex_;
  std::deque<std::string> lines_;
  size_t bytes_ = 0;
};

// The peer computes something else (Python: ProgramsDiffer), or one of the two has waited for the
// other until its deadline: `ours` and `theirs` are the parties' accounts, of which the latter is
// empty when the peer has not sent it.
struct ProgramsDiffer : std::runtime_error {
  ProgramsDiffer(const Account& account, std::string theirs);
  int rank, peer;
  std::string ours, theirs;
};

// The part of a channel that handles tags. Until it has an account, a channel sends the tag 0 and
// takes any; both ends get one at the same place of their stream.
class Tagged {
 public:
  virtual ~Tagged() = default;
  // `peer_reads`: whether the peer ever reads from this channel, and so can answer there.
  virtual void set_account(std::shared_ptr<const Account> account, bool peer_reads) = 0;
  // The tag of what is written and read from here on; what is queued leaves under the one before.
  virtual void set_tag(u64 tag) = 0;
  // Sends this account to the peer, receives the peer's, and throws ProgramsDiffer.
  [[noreturn]] virtual void differ() = 0;
  // After a wait until the deadline: a peer that computes something else may wait for this party.
  // Throws ProgramsDiffer when it answers, and returns when it does not.
  virtual void stalled() = 0;
  // Sends the peer one line, `cause`: why this party ends: it and a third one differ, or its
  // program has failed. Waits at most `patience` until the peer has read it.
  virtual void report(const std::string& cause, std::chrono::milliseconds patience) = 0;
};

// Null for a channel without tags.
Tagged* tagged(Channel* channel);

}  // namespace privml::net
