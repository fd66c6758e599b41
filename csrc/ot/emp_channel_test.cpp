// SPDX-License-Identifier: Apache-2.0
#include "ot/emp_channel.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "net/memory.h"
#include "ot/setup.h"

namespace privml::ot {
namespace {

// A connection with emp-tool's three functions and nothing else: bytes leave at flush.
class Wire {
 public:
  void push(const std::vector<u8>& bytes) {
    const std::lock_guard lock(mutex_);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    arrived_.notify_all();
  }
  void pop(u8* out, std::size_t n) {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return bytes_.size() >= n; });
    std::copy_n(bytes_.begin(), n, out);
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(n));
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<u8> bytes_;
};

class SimpleIo {
 public:
  SimpleIo(Wire& out, Wire& in) : out_(out), in_(in) {}
  void send_data(const void* data, std::size_t n) {
    const auto* bytes = static_cast<const u8*>(data);
    queued_.insert(queued_.end(), bytes, bytes + n);
  }
  void recv_data(void* data, std::size_t n) { in_.pop(static_cast<u8*>(data), n); }
  void flush() { out_.push(std::exchange(queued_, {})); }

 private:
  Wire& out_;
  Wire& in_;
  std::vector<u8> queued_;
};

// What a protocol written for emp-tool does with its IO.
template <class Io>
std::vector<u32> exchange(Io& io, u32 start) {
  std::vector<u32> mine(50'000), theirs(50'000);
  std::iota(mine.begin(), mine.end(), start);
  io.send_data(mine.data(), mine.size() * sizeof(u32));
  io.flush();
  io.recv_data(theirs.data(), theirs.size() * sizeof(u32));
  return theirs;
}

TEST(EmpChannel, AChannelServesAProtocolOfEmpTool) {
  auto [first, second] = net::make_memory_channels();
  std::vector<u32> got;
  EmpIo here(*first), there(*second);
  std::thread peer([&] { got = exchange(there, 7); });
  const auto theirs = exchange(here, 100);
  peer.join();
  EXPECT_EQ(theirs.front(), 7u);
  EXPECT_EQ(got.back(), 100u + 49'999u);
  EXPECT_EQ(here.counter, 200'000u);
}

TEST(EmpChannel, AConnectionOfEmpToolCarriesASession) {
  constexpr i64 kCount = 256;
  Wire there, back;
  SimpleIo ios[2] = {{there, back}, {back, there}};
  AlignedVector<crypto::Block> q(kCount), t(kCount);
  crypto::Block delta{};
  const auto run = [&](int rank) {
    const auto channel = channel_over(ios[rank]);
    const auto resources = make_party_resources(*channel, rank, OtConfig{});
    Party& party = resources->party();
    if (rank == 0) {
      draw_as_sender(party, q.data(), kCount);
      delta = party.sender.delta();
    } else {
      draw_as_receiver(party, t.data(), kCount);
    }
  };
  std::thread peer([&] { run(1); });
  run(0);
  peer.join();
  for (i64 i = 0; i < kCount; ++i) {
    const bool chosen = crypto::low_bit(t[i]) != 0;
    EXPECT_EQ(t[i], chosen ? q[i] ^ delta : q[i]);
  }
}

#if __has_include("emp-tool/io/io_channel.h")
TEST(EmpChannel, AChannelIsAnIoChannelOfTheRealLibrary) {
  auto [first, second] = make_memory_channels();
  std::vector<u32> got;
  EmpIoChannel here(*first), there(*second);
  std::thread peer([&] { got = exchange(there, 7); });
  const auto theirs = exchange(here, 100);
  peer.join();
  EXPECT_EQ(theirs.front(), 7u);
  EXPECT_EQ(got.front(), 100u);
}
#endif

}  // namespace
}  // namespace privml::ot
