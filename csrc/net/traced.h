// SPDX-License-Identifier: Apache-2.0
// Keeps direction and length of everything that passes, in order, and on request the bytes that
// were sent: what an observer of the network, or the peer, sees of a run.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/channel.h"
#include "net/tagged.h"

namespace privml::net {

// Bytes that left together, or that one read waited for.
struct Passage {
  bool sent;
  i64 bytes;
  friend bool operator==(const Passage&, const Passage&) = default;
};

class TracedChannel final : public Channel, public Tagged {
 public:
  explicit TracedChannel(std::shared_ptr<Channel> inner, bool keep_bytes = false)
      : inner_(std::move(inner)), keep_bytes_(keep_bytes) {}

  void write(Bytes bytes) override;
  void read(MutableBytes bytes) override;
  void flush() override;
  Traffic traffic() const override { return inner_->traffic(); }
  void set_depth(i64 depth) override;
  void set_deadline(std::chrono::milliseconds deadline) override { inner_->set_deadline(deadline); }
  void close() override { inner_->close(); }
  std::string peer_name() const override { return inner_->peer_name(); }
  CertifiedNames names() const override { return inner_->names(); }
  bool peer_closed() const override { return inner_->peer_closed(); }

  void set_account(std::shared_ptr<const Account> account, bool peer_reads) override {
    tags().set_account(std::move(account), peer_reads);
  }
  void set_tag(u64 tag) override;
  void differ() override { tags().differ(); }
  void stalled() override { tags().stalled(); }
  void report(const std::string& cause, std::chrono::milliseconds patience) override {
    tags().report(cause, patience);
  }

  // For the thread that uses the channel, or once it has ended.
  const std::vector<Passage>& passages() const { return passages_; }
  // Empty unless they are kept.
  const std::vector<u8>& sent() const { return sent_; }

 private:
  void finish_message();
  Tagged& tags();

  std::shared_ptr<Channel> inner_;
  bool keep_bytes_;
  std::vector<Passage> passages_;
  std::vector<u8> sent_;
  i64 pending_ = 0;  // bytes written since the last message was finished
};

}  // namespace privml::net
