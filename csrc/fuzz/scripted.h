// SPDX-License-Identifier: Apache-2.0
// A peer whose every byte is chosen beforehand: a channel or transport that reads from a script and
// drops what is written. Reads beyond the script's end throw PeerDisconnected, as after a close.
#pragma once

#include <vector>

#include "net/framed.h"

namespace privml::fuzz {

class ScriptedChannel final : public net::Channel {
 public:
  explicit ScriptedChannel(Bytes script) : script_(script) {}

  void write(Bytes bytes) override { traffic_.sent += std::ssize(bytes); }
  void read(MutableBytes bytes) override;
  void flush() override {}
  net::Traffic traffic() const override { return traffic_; }
  void set_depth(i64 depth) override { traffic_.depth = depth; }
  void set_deadline(std::chrono::milliseconds) override {}
  void close() override { closed_ = true; }

 private:
  Bytes script_;
  bool closed_ = false;
  net::Traffic traffic_;
};

class ScriptedTransport final : public net::Transport {
 public:
  explicit ScriptedTransport(Bytes script) : channel_(script) {}

  void send(Bytes, Bytes, std::chrono::milliseconds) override {}
  void receive(MutableBytes bytes, std::chrono::milliseconds) override { channel_.read(bytes); }
  void close() override { channel_.close(); }

 private:
  ScriptedChannel channel_;
};

// What a channel's owner has read from it so far, in one piece.
class ListeningChannel final : public net::Channel {
 public:
  ListeningChannel(net::Channel& inner, std::vector<u8>& received)
      : inner_(inner), received_(received) {}

  void write(Bytes bytes) override { inner_.write(bytes); }
  void read(MutableBytes bytes) override {
    inner_.read(bytes);
    received_.insert(received_.end(), bytes.begin(), bytes.end());
  }
  void flush() override { inner_.flush(); }
  net::Traffic traffic() const override { return inner_.traffic(); }
  void set_depth(i64 depth) override { inner_.set_depth(depth); }
  void set_deadline(std::chrono::milliseconds deadline) override { inner_.set_deadline(deadline); }
  void close() override { inner_.close(); }

 private:
  net::Channel& inner_;
  std::vector<u8>& received_;
};

// `script` with at most 64 changes, eight bytes each: what (change a bit pattern, overwrite with a
// byte, zeros or ones, insert, erase, repeat an earlier piece, end here), size, place (3), and
// value (3). Anything is a list of changes.
std::vector<u8> edited(std::vector<u8> script, Bytes changes);

}  // namespace privml::fuzz
