// SPDX-License-Identifier: Apache-2.0
#include "net/memory.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>

#include "base/error.h"
#include "net/framed.h"

namespace privml::net {
namespace {

// One direction: whole frames queue up, the reader takes them one by one.
struct Pipe {
  std::mutex mutex;
  std::condition_variable arrived;
  std::deque<AlignedVector<u8>> frames;
  bool closed = false;

  void close() {
    {
      const std::lock_guard lock(mutex);
      closed = true;
    }
    arrived.notify_all();
  }
};

class MemoryTransport final : public Transport {
 public:
  MemoryTransport(std::shared_ptr<Pipe> out, std::shared_ptr<Pipe> in)
      : out_(std::move(out)), in_(std::move(in)) {}
  ~MemoryTransport() override { close(); }

  void send(Bytes header, Bytes payload, std::chrono::milliseconds) override {
    AlignedVector<u8> frame(header.size() + payload.size());
    std::memcpy(frame.data(), header.data(), header.size());
    std::memcpy(frame.data() + header.size(), payload.data(), payload.size());
    {
      const std::lock_guard lock(out_->mutex);
      if (out_->closed) throw gone();
      out_->frames.push_back(std::move(frame));
    }
    out_->arrived.notify_one();
  }

  void receive(MutableBytes bytes, std::chrono::milliseconds deadline) override {
    while (!bytes.empty()) {
      if (closed_here_) throw gone();
      if (taken_ == current_.size()) next_frame(deadline);
      const size_t n = std::min(bytes.size(), current_.size() - taken_);
      std::memcpy(bytes.data(), current_.data() + taken_, n);
      taken_ += n;
      bytes = bytes.subspan(n);
    }
  }

  void close() override {
    closed_here_ = true;
    out_->close();
    in_->close();
  }

  bool peer_closed() const override {
    const std::lock_guard lock(in_->mutex);
    return in_->closed;
  }

 private:
  void next_frame(std::chrono::milliseconds deadline) {
    std::unique_lock lock(in_->mutex);
    const bool ready =
        in_->arrived.wait_for(lock, deadline, [&] { return !in_->frames.empty() || in_->closed; });
    if (!ready)
      throw PeerDisconnected("no answer from the in-memory peer within " + duration_text(deadline));
    // What a peer sent before it closed can still be read.
    if (in_->frames.empty()) throw gone();
    current_ = std::move(in_->frames.front());
    in_->frames.pop_front();
    taken_ = 0;
  }

  PeerDisconnected gone() const {
    return PeerDisconnected(closed_here_ ? "this side closed the in-memory connection"
                                         : "the peer closed the in-memory connection");
  }

  std::shared_ptr<Pipe> out_;
  std::shared_ptr<Pipe> in_;
  std::atomic<bool> closed_here_{false};
  AlignedVector<u8> current_;
  size_t taken_ = 0;
};

}  // namespace

ChannelPair make_memory_channels() {
  auto forth = std::make_shared<Pipe>();
  auto back = std::make_shared<Pipe>();
  return {std::make_unique<FramedChannel>(std::make_unique<MemoryTransport>(forth, back)),
          std::make_unique<FramedChannel>(std::make_unique<MemoryTransport>(back, forth))};
}

}  // namespace privml::net
