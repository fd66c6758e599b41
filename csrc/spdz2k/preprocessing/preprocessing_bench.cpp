// SPDX-License-Identifier: Apache-2.0
// Rate and bytes of the preprocessing, two threads over loopback TCP, correlated OTs included.
// Usage: preprocessing_bench [op [ring [n [provider [k]]]]], op one of mask, random, triple,
// square, random_bit or all, ring 32 or 64, provider softspoken (of degree k) or
// silent (OT and VOLE).
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "net/tcp.h"
#include "ot/testing/parties.h"
#include "spdz2k/preprocessing/ideal.h"
#include "spdz2k/preprocessing/masks.h"
#include "spdz2k/preprocessing/random_bit.h"
#include "spdz2k/preprocessing/triple.h"
#include "spdz2k/vole/silent_vole.h"

namespace privml::spdz2k {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

net::ChannelPair open_channels() {
  net::TcpListener listener("127.0.0.1", 0);
  net::ChannelPair pair;
  std::thread client([&] {
    pair.second = net::connect_tcp("127.0.0.1", listener.port(), std::chrono::seconds(5));
  });
  pair.first = listener.accept(std::chrono::seconds(5));
  client.join();
  return pair;
}

template <class R>
struct Operation {
  const char* name;
  void (*run)(Authentication<R>&, i64);
};

template <class R>
void masks(Authentication<R>& authentication, i64 n) {
  WordShares<R> r(n);
  WipedVector<u64> clear(authentication.session().rank == 0 ? n : 0);
  generate_masks<R>(authentication, 0, r, clear);
}
template <class R>
void randoms(Authentication<R>& authentication, i64 n) {
  WordShares<R> r(n);
  generate_randoms<R>(authentication, r);
}
template <class R>
void triples(Authentication<R>& authentication, i64 n) {
  WordShares<R> a(n), b(n), c(n);
  generate_triples<R>(authentication, a, b, c);
}
template <class R>
void squares(Authentication<R>& authentication, i64 n) {
  WordShares<R> a(n), square(n);
  generate_squares<R>(authentication, a, square);
}
template <class R>
void bits(Authentication<R>& authentication, i64 n) {
  WordShares<R> b(n);
  generate_bits<R>(authentication, b);
}

template <class R>
void bench(const Operation<R>& operation, i64 n, const ot::OtConfig& config) {
  auto [first, second] = open_channels();
  const std::array<net::Channel*, 2> channels{first.get(), second.get()};
  std::array<double, 2> setup{}, seconds{};
  std::array<i64, 2> sent{};
  i64 setup_bytes = 0;
  ot::testing::run_pair(
      [&](int rank) {
        const auto start = Clock::now();
        const auto resources = ot::make_party_resources(*channels[rank], rank, config);
        ot::Party& party = resources->party();
        constexpr crypto::Block kSeed{1, 2};
        Session<R> session(rank, party.channel, party.prg, ideal_key<R>(kSeed, rank));
        const auto supply = make_ideal_supply<R>(kSeed, rank);  // for masks of checks alone
        session.set_supply(*supply);
        Authentication<R> authentication(session, party);
        std::optional<SilentVole<R>> voles;
        if (config.provider == "silent") voles.emplace(authentication);
        setup[rank] = seconds_since(start);
        if (rank == 0) setup_bytes = party.channel.traffic().sent;
        operation.run(authentication, std::min<i64>(n, 256));
        session.toss();
        const i64 before = party.channel.traffic().sent;
        const auto begin = Clock::now();
        operation.run(authentication, n);
        seconds[rank] = seconds_since(begin);
        party.channel.flush();
        sent[rank] = party.channel.traffic().sent - before;
      },
      [&] {
        for (net::Channel* channel : channels) channel->close();
      });
  const double count = static_cast<double>(n), slower = std::max(seconds[0], seconds[1]);
  std::printf(
      "%-10s k=%d n=%-7lld %-10s %8.3f s %12.0f /s  bytes each way %9.1f %9.1f  setup %.2f s %.1f "
      "MB\n",
      operation.name, R::k, static_cast<long long>(n), config.provider.c_str(), slower,
      count / slower, static_cast<double>(sent[0]) / count, static_cast<double>(sent[1]) / count,
      std::max(setup[0], setup[1]), static_cast<double>(setup_bytes) * 1e-6);
  std::fflush(stdout);
}

template <class R>
void bench_all(const char* name, i64 n, const ot::OtConfig& config) {
  const Operation<R> operations[]{{"mask", masks<R>},
                                  {"random", randoms<R>},
                                  {"triple", triples<R>},
                                  {"square", squares<R>},
                                  {"random_bit", bits<R>}};
  for (const Operation<R>& operation : operations) {
    if (std::strcmp(name, "all") == 0 || std::strcmp(name, operation.name) == 0) {
      bench(operation, n, config);
    }
  }
}

}  // namespace
}  // namespace privml::spdz2k

int main(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "all";
  const int ring = argc > 2 ? std::atoi(argv[2]) : 0;
  const privml::i64 n = argc > 3 ? std::atoll(argv[3]) : 1 << 14;
  privml::ot::OtConfig config;
  config.security = "malicious";
  if (argc > 4) config.provider = argv[4];
  config.k = argc > 5 ? std::atoi(argv[5]) : 8;
  if (ring != 32) privml::spdz2k::bench_all<privml::spdz2k::Ring64>(name, n, config);
  if (ring != 64) privml::spdz2k::bench_all<privml::spdz2k::Ring32>(name, n, config);
}
