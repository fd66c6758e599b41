// SPDX-License-Identifier: Apache-2.0
// Speed of the channels between two threads. Usage: channel_bench [megabytes per line]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <thread>
#include <vector>

#include "net/memory.h"
#include "net/tcp.h"

namespace privml::net {
namespace {

ChannelPair open_channels(bool tcp) {
  if (!tcp) return make_memory_channels();
  TcpListener listener("127.0.0.1", 0);
  auto client = connect_tcp("127.0.0.1", listener.port(), std::chrono::seconds(5));
  return {listener.accept(std::chrono::seconds(5)), std::move(client)};
}

// Wall clock, and processor time of both threads together, which other programs disturb less.
struct Seconds {
  double wall = 0;
  double processor = 0;
};

Seconds time(const std::function<void()>& first, const std::function<void()>& second) {
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t processor = std::clock();
  std::thread other(second);
  first();
  other.join();
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
          static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC};
}

void report(const char* channel, const char* what, i64 piece, i64 bytes, Seconds seconds) {
  const double gigabytes = static_cast<double>(bytes) / 1e9;
  std::printf("%-6s %-9s pieces of %7lld B %7.3f GB/s %7.3f GB per processor second\n", channel,
              what, static_cast<long long>(piece), gigabytes / seconds.wall,
              gigabytes / seconds.processor);
}

void send_all(Channel& channel, i64 bytes, i64 piece) {
  const std::vector<u8> data(static_cast<size_t>(piece), 1);
  for (i64 done = 0; done < bytes; done += piece) channel.write(data);
  channel.flush();
}

void receive_all(Channel& channel, i64 bytes, i64 piece) {
  std::vector<u8> data(static_cast<size_t>(piece));
  for (i64 done = 0; done < bytes; done += piece) channel.read(data);
}

void run(i64 bytes) {
  for (const bool tcp : {false, true}) {
    const char* name = tcp ? "tcp" : "memory";
    for (const i64 piece : {16, 1 << 10, 1 << 16, 1 << 20}) {
      auto [a, b] = open_channels(tcp);
      const Seconds one_way = time([&, &a = a] { send_all(*a, bytes, piece); },
                                   [&, &b = b] { receive_all(*b, bytes, piece); });
      report(name, "one way", piece, bytes, one_way);
    }
    auto [a, b] = open_channels(tcp);
    const auto exchange = [&](Channel& channel) {
      const i64 part = i64{1} << 20;
      for (i64 done = 0; done < bytes; done += part) {
        send_all(channel, part, part);
        receive_all(channel, part, part);
      }
    };
    report(name, "both ways", 1 << 20, 2 * bytes,
           time([&, &a = a] { exchange(*a); }, [&, &b = b] { exchange(*b); }));
    constexpr i64 kHops = 4000;
    const auto bounce = [&](Channel& channel, bool starts) {
      u8 data[16] = {};
      for (i64 i = 0; i < kHops / 2; ++i) {
        if (starts) channel.write(data);
        channel.read(data);
        if (!starts) channel.write(data);
      }
      channel.flush();
    };
    const Seconds hops =
        time([&, &a = a] { bounce(*a, true); }, [&, &b = b] { bounce(*b, false); });
    std::printf("%-6s ping-pong %8.2f us per hop, %.2f of processor time\n", name,
                hops.wall / kHops * 1e6, hops.processor / kHops * 1e6);
  }
}

}  // namespace
}  // namespace privml::net

int main(int argc, char** argv) { privml::net::run((argc > 1 ? std::atoll(argv[1]) : 256) << 20); }
