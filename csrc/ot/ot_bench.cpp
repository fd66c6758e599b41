// SPDX-License-Identifier: Apache-2.0
// Throughput of the OT layer, two threads on this machine: operations per second by the slower
// party's wall clock, and each party's own CPU time. Set-up is the quickest of the sessions of a
// line. Usage: ot_bench [seconds per line [extensions]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "base/transpose.h"
#include "crypto/gf128.h"
#include "crypto/lane_digest.h"
#include "net/tcp.h"
#include "ot/derive.h"
#include "ot/testing/parties.h"

namespace privml::ot::testing {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double thread_seconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

net::ChannelPair open_channels(bool tcp) {
  if (!tcp) return net::make_memory_channels();
  net::TcpListener listener("127.0.0.1", 0);
  net::ChannelPair pair;
  std::thread client([&] {
    pair.second = net::connect_tcp("127.0.0.1", listener.port(), std::chrono::seconds(5));
  });
  pair.first = listener.accept(std::chrono::seconds(5));
  client.join();
  return pair;
}

// One timed piece of work; prepare(party) makes the work of a party and runs before the clock
// starts.
struct Bench {
  const char* name;
  i64 operations;
  std::function<std::function<void()>(Party&)> prepare;
};

void run_bench(const Bench& bench, const OtConfig& config, bool tcp, double budget) {
  auto [first, second] = open_channels(tcp);
  const std::array<net::Channel*, 2> channels{first.get(), second.get()};
  std::array<double, 2> best{1e9, 1e9}, cpu{1e9, 1e9}, setup{};
  i64 bytes = 0;
  run_pair(
      [&](int rank) {
        net::Channel& channel = *channels[rank];
        const auto resources = make_party_resources(channel, rank, config);
        Party& party = resources->party();
        setup[rank] = party.ledger.phases[0].seconds;
        u8 again = 1;
        for (const auto start = Clock::now(); again;) {
          const auto work = bench.prepare(party);
          // Both parties start together; party 0 decides when to stop.
          again = seconds_since(start) < budget;
          if (rank == 0) {
            channel.write({&again, 1});
            channel.read({&again, 1});
          } else {
            channel.read({&again, 1});
            channel.write({&again, 1});
            channel.flush();
          }
          const net::Traffic before = channel.traffic();
          const auto begin = Clock::now();
          const double cpu_begin = thread_seconds();
          work();
          channel.flush();
          cpu[rank] = std::min(cpu[rank], thread_seconds() - cpu_begin);
          best[rank] = std::min(best[rank], seconds_since(begin));
          const net::Traffic after = channel.traffic();
          if (rank == 0) bytes = after.sent + after.received - before.sent - before.received;
        }
      },
      [&] {
        for (net::Channel* channel : channels) channel->close();
      });
  const double n = static_cast<double>(bench.operations);
  const double slower = std::max(best[0], best[1]);
  const std::string provider =
      config.provider == "silent" ? "silent" : "k=" + std::to_string(config.k);
  std::printf("%-22s %-6s %-11s %-6s %8.2f M/s  CPU %7.2f / %7.2f ns  %7.3f B  setup %.1f ms\n",
              bench.name, provider.c_str(), config.security.c_str(), tcp ? "tcp" : "memory",
              n / slower / 1e6, cpu[0] / n * 1e9, cpu[1] / n * 1e9, static_cast<double>(bytes) / n,
              setup[0] * 1e3);
  std::fflush(stdout);
}

// Party 0 sends, in pieces as a stream would.
Bench streaming(i64 n, i64 piece) {
  return {"cot one way", n, [n, piece](Party& party) {
            return [n, piece, &party] {
              std::vector<crypto::Block> out(piece);
              for (i64 done = 0; done < n; done += piece) {
                if (party.rank == 0) {
                  draw_as_sender(party, out.data(), piece);
                } else {
                  draw_as_receiver(party, out.data(), piece);
                }
              }
            };
          }};
}

Bench reserving(i64 n) {
  return {"reserve both ways", 2 * n, [n](Party& party) {
            std::vector<crypto::Block> rest(
                std::max(party.sender.available(), party.receiver.available()));
            party.sender.take(rest.data(), party.sender.available());
            party.receiver.take(rest.data(), party.receiver.available());
            return [n, &party] { reserve(party, n, n); };
          }};
}

// Correlations are chosen before the clock starts, so that only the transfer is timed.
std::shared_ptr<std::vector<crypto::Block>> chosen(Party& party, const std::vector<u8>& choices) {
  auto blocks = std::make_shared<std::vector<crypto::Block>>(choices.size());
  if (party.rank == 0) {
    choose_send(party, blocks->data(), std::ssize(choices));
  } else {
    choose_receive(party, choices, blocks->data());
  }
  party.channel.flush();
  return blocks;
}

Bench choosing(i64 n) {
  return {"choose", n, [n](Party& party) {
            auto blocks = std::make_shared<std::vector<crypto::Block>>(n);
            party.rank == 0 ? reserve(party, n, 0) : reserve(party, 0, n);
            return [n, &party, blocks, choices = std::vector<u8>(n, 1)] {
              if (party.rank == 0) {
                choose_send(party, blocks->data(), n);
              } else {
                choose_receive(party, choices, blocks->data());
              }
            };
          }};
}

Bench rows(i64 n, int width, const char* name) {
  return {name, n, [n, width](Party& party) {
            auto blocks = chosen(party, std::vector<u8>(4 * n, 1));
            auto table = std::make_shared<std::vector<u32>>(n, 7);
            return
                [=, &party, choices = std::vector<u8>(n, 15), out = std::vector<u8>(n)]() mutable {
                  if (party.rank == 0) {
                    one_of_n_send_rows(party, blocks->data(), 4, width, *table);
                  } else {
                    one_of_n_receive_rows(party, blocks->data(), choices, 4, width, out);
                  }
                };
          }};
}

Bench messages(i64 n, int m, int width, const char* name) {
  return {name, n, [=](Party& party) {
            auto blocks = chosen(party, std::vector<u8>(m * n, 1));
            auto table = std::make_shared<std::vector<u64>>(n << m, 7);
            const u8 choice = static_cast<u8>((1 << m) - 1);
            return [=, &party, choices = std::vector<u8>(n, choice),
                    out = std::vector<u64>(n)]() mutable {
              if (party.rank == 0) {
                one_of_n_send(party, blocks->data(), m, width, *table);
              } else {
                one_of_n_receive(party, blocks->data(), choices, m, width, out);
              }
            };
          }};
}

Bench additive(i64 n, i64 length, int width, const char* name) {
  return {name, n * length, [=](Party& party) {
            auto blocks = chosen(party, std::vector<u8>(n, 1));
            auto x = std::make_shared<std::vector<u64>>(n * length, 7);
            return [=, &party, choices = std::vector<u8>(n, 1),
                    out = std::vector<u64>(n * length)]() mutable {
              if (party.rank == 0) {
                additive_send(party, blocks->data(), *x, length, width, out);
              } else {
                additive_receive(party, blocks->data(), choices, length, width, out);
              }
            };
          }};
}

Bench triples(i64 n) {
  return {"bit triples, width 2", n, [n](Party& party) {
            reserve(party, n, n);
            return [n, &party, a = std::vector<u8>(n), b = std::vector<u8>(n),
                    c = std::vector<u8>(n)]() mutable { bit_triples(party, n, 2, a, b, c); };
          }};
}

constexpr i64 kMany = i64{1} << 20;

void run_extensions(double budget, bool tcp) {
  for (const std::string security : {"semi_honest", "malicious"}) {
    for (int k : {1, 2, 4, 8}) {
      const OtConfig config{"softspoken", k, security, {}};
      run_bench(streaming(16 * kMany, kMany / 32), config, tcp, budget);
      run_bench(reserving(kMany / 4), config, tcp, budget);
    }
    // Whole iterations.
    const OtConfig config{"silent", 0, security, {}};
    const i64 made = rcot_cost(config).granularity;
    run_bench(streaming(8 * made, made / 57), config, tcp, budget);
    run_bench(reserving(made), config, tcp, budget);
  }
}

void run_all(double budget) {
  for (bool tcp : {false, true}) {
    run_extensions(budget, tcp);
    const std::vector<Bench> derived{choosing(kMany),
                                     rows(kMany / 8, 2, "1-of-16, 2 bits, rows"),
                                     rows(kMany / 8, 1, "1-of-16, 1 bit, rows"),
                                     messages(kMany / 8, 4, 2, "1-of-16, 2 bits"),
                                     messages(kMany / 64, 8, 32, "1-of-256, 32 bits"),
                                     additive(kMany, 1, 32, "additive, 32 bits"),
                                     additive(kMany / 512, 512, 32, "additive x512, 32 bits"),
                                     triples(kMany)};
    for (const Bench& bench : derived) run_bench(bench, {}, tcp, budget);
  }
}

}  // namespace
}  // namespace privml::ot::testing

int main(int argc, char** argv) {
  std::printf("kernels: AES %s, transposes %s, checks %s, digests %s\n",
              privml::crypto::aes_backend_name(privml::crypto::best_aes_backend()),
              privml::transpose_kernel(), privml::crypto::gf128_kernel(),
              privml::crypto::lane_digest_kernel());
  const double budget = argc > 1 ? std::atof(argv[1]) : 1.0;
  if (argc > 2) {
    privml::ot::testing::run_extensions(budget, true);
  } else {
    privml::ot::testing::run_all(budget);
  }
  return 0;
}
