// SPDX-License-Identifier: Apache-2.0
// Bytes and speed of the comparison family between two threads over loopback TCP, correlations
// included. Arguments: values of k, separated by commas (default 1,2,4,8), log2 of the number of
// inputs (default 18), names of rows (default all).
#include <time.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "net/tcp.h"
#include "ot/setup.h"
#include "twopc/compare/equality.h"
#include "twopc/compare/maximum.h"
#include "twopc/compare/millionaires.h"
#include "twopc/compare/relu.h"
#include "twopc/select/boolean.h"
#include "twopc/select/multiplex.h"
#include "twopc/width/conversion.h"
#include "twopc/width/extension.h"
#include "twopc/width/truncation.h"

namespace privml::twopc {
namespace {

// Inputs and outputs of one party.
struct Data {
  std::vector<u64> x, y;
  std::vector<u8> a, b, c;
};

struct Row {
  std::string name;
  std::function<void(ot::Party&, Data&)> run;
  i64 inputs_per_element = 1;
};

std::vector<Row> all_rows() {
  using P = ot::Party&;
  using D = Data&;
  return {
      {"correlations",
       [](P p, D d) {
         const i64 n = std::ssize(d.x) * 16;
         std::vector<crypto::Block> piece(1 << 13);
         ot::reserve(p, n, n);
         for (i64 i = 0; i < n; i += std::ssize(piece)) {
           ot::draw_as_sender(p, piece.data(), std::min<i64>(std::ssize(piece), n - i));
           ot::draw_as_receiver(p, piece.data(), std::min<i64>(std::ssize(piece), n - i));
         }
       }},
      {"relu32", [](P p, D d) { relu(p, d.x, 32, d.y, d.c); }},
      {"relu37", [](P p, D d) { relu(p, d.x, 37, d.y, d.c); }},
      {"relu64", [](P p, D d) { relu(p, d.x, 64, d.y, d.c); }},
      {"compare32", [](P p, D d) { millionaires(p, d.x, 32, d.c); }},
      {"compare64", [](P p, D d) { millionaires(p, d.x, 64, d.c); }},
      {"equal32", [](P p, D d) { equal(p, d.x, 32, d.c); }},
      {"truncate32", [](P p, D d) { truncate_arithmetic(p, d.x, 32, 12, d.y); }},
      {"truncate64", [](P p, D d) { truncate_arithmetic(p, d.x, 64, 12, d.y); }},
      {"truncate_nonnegative32", [](P p, D d) { truncate_nonnegative(p, d.x, 32, 12, d.y); }},
      {"truncate_reduce32", [](P p, D d) { truncate_reduce(p, d.x, 32, 12, d.y); }},
      {"extend16to32", [](P p, D d) { sign_extend(p, d.x, 16, 32, d.y); }},
      {"extend_nonnegative16to32", [](P p, D d) { extend_nonnegative(p, d.x, 16, 32, d.y); }},
      {"maxpool2x2",
       [](P p, D d) { maximum_windows(p, d.x, 4, 32, std::span(d.y).first(d.x.size() / 4)); }, 4},
      {"maxpool2x2_one_hot",
       [](P p, D d) {
         maximum_windows_one_hot(p, d.x, 4, 32, std::span(d.y).first(d.x.size() / 4), d.c);
       },
       4},
      {"and", [](P p, D d) { and_bits(p, d.a, d.b, d.c); }},
      {"mux32", [](P p, D d) { multiplex(p, d.a, d.x, 32, d.y); }},
      {"b2a32", [](P p, D d) { bits_to_ring(p, d.a, 32, d.y); }},
  };
}

double thread_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Measured {
  double seconds = 0;
  double cpu = 0;
  double preprocess = 0;
  net::Traffic traffic;
};

Measured measure(ot::Party& party, const Row& row, Data& data, std::barrier<>& together) {
  row.run(party, data);  // warm
  party.channel.flush();
  together.arrive_and_wait();
  const net::Traffic before = party.channel.traffic();
  const int preprocess = static_cast<int>(ot::Phase::preprocess);
  const double prepared = party.ledger.phases[preprocess].seconds;
  const auto start = std::chrono::steady_clock::now();
  const double cpu = thread_seconds();
  row.run(party, data);
  party.channel.flush();
  together.arrive_and_wait();
  Measured result;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.cpu = thread_seconds() - cpu;
  result.preprocess = party.ledger.phases[preprocess].seconds - prepared;
  const net::Traffic after = party.channel.traffic();
  result.traffic = {after.sent - before.sent, after.received - before.received,
                    after.depth - before.depth};
  return result;
}

void run_party(int rank, net::Channel& channel, int k, i64 n, const std::vector<Row>& rows,
               std::barrier<>& together, const std::function<void(const Row&, Measured)>& done) {
  const auto resources =
      ot::make_party_resources(channel, rank, {"softspoken", k, "semi_honest", std::nullopt});
  ot::Party& party = resources->party();
  Data data{std::vector<u64>(n), std::vector<u64>(n), std::vector<u8>(n), std::vector<u8>(n),
            std::vector<u8>(n)};
  party.prg.fill_ring(data.x, 64);
  party.prg.fill_bits(data.a);
  party.prg.fill_bits(data.b);
  for (const Row& row : rows) done(row, measure(party, row, data, together));
}

void bench(int k, i64 n, const std::vector<Row>& rows) {
  net::TcpListener listener("127.0.0.1", 0);
  std::barrier<> together(2);
  std::array<std::vector<Measured>, 2> all;
  const auto keep = [&](int rank) {
    return [&all, rank](const Row&, Measured result) { all[rank].push_back(result); };
  };
  std::thread other([&] {
    const auto channel =
        net::connect_tcp("127.0.0.1", listener.port(), std::chrono::milliseconds(10'000));
    run_party(1, *channel, k, n, rows, together, keep(1));
  });
  const auto channel = listener.accept(std::chrono::milliseconds(10'000));
  run_party(0, *channel, k, n, rows, together, keep(0));
  other.join();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Measured& m = all[0][i];
    const double count = static_cast<double>(n / rows[i].inputs_per_element);
    std::printf(
        "k=%d %-26s n=%.0f  %9.1f k/s  %7.1f B  depth %3ld  cpu %6.1f / %6.1f ns  "
        "preprocess %4.1f%%\n",
        k, rows[i].name.c_str(), count, count / m.seconds / 1e3,
        static_cast<double>(m.traffic.sent + m.traffic.received) / count,
        static_cast<long>(m.traffic.depth), m.cpu / count * 1e9, all[1][i].cpu / count * 1e9,
        100 * m.preprocess / m.seconds);
  }
}

}  // namespace
}  // namespace privml::twopc

int main(int argc, char** argv) {
  std::vector<int> degrees;
  for (const char* at = argc > 1 ? argv[1] : "1,2,4,8"; *at != '\0'; ++at) {
    if (*at != ',') degrees.push_back(*at - '0');
  }
  const privml::i64 n = privml::i64{1} << (argc > 2 ? std::atoi(argv[2]) : 18);
  std::vector<privml::twopc::Row> rows = privml::twopc::all_rows();
  if (argc > 3) {
    std::erase_if(rows, [&](const privml::twopc::Row& row) {
      return std::none_of(argv + 3, argv + argc, [&](const char* s) { return row.name == s; });
    });
  }
  for (int k : degrees) privml::twopc::bench(k, n, rows);
}
