// SPDX-License-Identifier: Apache-2.0
// Keeps a hash of everything that passes, for tests that pin down a protocol's wire trace.
#pragma once

#include <memory>
#include <string>

#include "net/channel.h"

namespace privml::net {

class RecordedChannel final : public Channel {
 public:
  explicit RecordedChannel(std::unique_ptr<Channel> inner);
  ~RecordedChannel() override;

  void write(Bytes bytes) override;
  void read(MutableBytes bytes) override;
  void flush() override { inner_->flush(); }
  Traffic traffic() const override { return inner_->traffic(); }
  void set_depth(i64 depth) override { inner_->set_depth(depth); }
  void set_deadline(std::chrono::milliseconds deadline) override { inner_->set_deadline(deadline); }
  void close() override { inner_->close(); }
  std::string peer_name() const override { return inner_->peer_name(); }
  CertifiedNames names() const override { return inner_->names(); }
  bool peer_closed() const override { return inner_->peer_closed(); }

  // SHA-256 in hexadecimal of all payload bytes sent / received so far.
  std::string sent_hash() const;
  std::string received_hash() const;

 private:
  struct Hashes;
  std::unique_ptr<Channel> inner_;
  std::unique_ptr<Hashes> hashes_;
};

}  // namespace privml::net
