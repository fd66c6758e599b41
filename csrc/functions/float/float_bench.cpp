// SPDX-License-Identifier: Apache-2.0
// Bytes, depth and speed of the floating-point primitives on float32. Bytes are those of the cost
// functions, correlations included at their price per piece; speed is that of two threads over
// loopback TCP, preprocessing included. Arguments: batch (default 10000; 0: costs only), names of
// rows (default all).
#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "functions/float/addition.h"
#include "functions/float/comparison.h"
#include "functions/float/conversion.h"
#include "functions/float/division.h"
#include "functions/float/multiplication.h"
#include "functions/float/operation.h"
#include "net/tcp.h"
#include "ot/setup.h"

namespace privml::floating {
namespace {

struct Data {
  FloatVector a, b, out;
  std::vector<u8> bits;
};

struct Row {
  std::string name;
  std::function<void(ot::Party&, Data&)> run;
  std::function<void(ot::CostMeter&, i64)> cost;
};

Row unary(const char* name, const FloatUnary& operation) {
  return {name, [operation](ot::Party& p, Data& d) { operation.run(p, d.a, d.out); },
          [operation](ot::CostMeter& m, i64 n) { operation.cost(m, n); }};
}
Row binary(const char* name, const FloatBinary& operation) {
  return {name, [operation](ot::Party& p, Data& d) { operation.run(p, d.a, d.b, d.out); },
          [operation](ot::CostMeter& m, i64 n) { operation.cost(m, n); }};
}
Row relation(const char* name, const FloatRelation& operation) {
  return {name, [operation](ot::Party& p, Data& d) { operation.run(p, d.a, d.b, d.bits); },
          [operation](ot::CostMeter& m, i64 n) { operation.cost(m, n); }};
}

std::vector<Row> all_rows() {
  return {
      relation("lt", float_less_than(kFloat32)), relation("eq", float_equal(kFloat32)),
      binary("max", float_maximum(kFloat32)),    binary("mul", float_multiply(kFloat32)),
      binary("add", float_add(kFloat32)),        binary("div", float_divide(kFloat32)),
      unary("sqrt", float_sqrt(kFloat32)),       unary("round", float_round_to_integer(kFloat32))};
}

void print_cost(const Row& row) {
  std::printf("%-10s", row.name.c_str());
  for (const ot::OtConfig& config : {ot::OtConfig{"softspoken", 4, "semi_honest", std::nullopt},
                                     ot::OtConfig{"softspoken", 8, "semi_honest", std::nullopt},
                                     ot::OtConfig{"silent", 0, "semi_honest", std::nullopt}}) {
    const i64 n = kFloatChunk;
    ot::CostMeter online(ot::RcotCost{"ideal", 0, 1, i64{1} << 62});
    online.correlation_bits = ot::rcot_cost(config).bits_per_correlation();
    row.cost(online, n);
    const double cots = static_cast<double>(online.cots[0] + online.cots[1]);
    const double messages = static_cast<double>(online.bytes[0] + online.bytes[1]);
    const double bytes = messages + cots * online.correlation_bits / 8;
    std::printf("  %s%-2d %6.3f KiB (%5.0f + %5.1f cots) depth %2ld", config.provider.c_str(),
                config.k, bytes / static_cast<double>(n) / 1024, messages / static_cast<double>(n),
                cots / static_cast<double>(n),
                static_cast<long>(std::max(online.depth[0], online.depth[1])));
  }
  std::printf("\n");
}

double seconds_of(ot::Party& party, const Row& row, Data& data, std::barrier<>& together) {
  row.run(party, data);  // warm
  party.channel.flush();
  double best = 1e9;
  for (int repeat = 0; repeat < 3; ++repeat) {
    together.arrive_and_wait();
    const auto start = std::chrono::steady_clock::now();
    row.run(party, data);
    party.channel.flush();
    together.arrive_and_wait();
    const auto stop = std::chrono::steady_clock::now();
    best = std::min(best, std::chrono::duration<double>(stop - start).count());
  }
  return best;
}

void run_party(int rank, net::Channel& channel, i64 n, const std::vector<Row>& rows,
               std::barrier<>& together) {
  const auto resources =
      ot::make_party_resources(channel, rank, {"softspoken", 4, "semi_honest", std::nullopt});
  ot::Party& party = resources->party();
  Data data{FloatVector(n), FloatVector(n), FloatVector(n), std::vector<u8>(n)};
  for (FloatVector* vector : {&data.a, &data.b}) {
    party.prg.fill_bits(vector->zero);
    party.prg.fill_bits(vector->sign);
    party.prg.fill_ring(vector->exponent, kFloat32.exponent_bits());
    party.prg.fill_ring(vector->mantissa, kFloat32.mantissa_bits());
  }
  for (const Row& row : rows) {
    const double seconds = seconds_of(party, row, data, together);
    if (rank == 0) {
      std::printf("%-10s n=%ld  %8.1f k/s\n", row.name.c_str(), static_cast<long>(n),
                  static_cast<double>(n) / seconds / 1e3);
    }
  }
}

void bench(i64 n, const std::vector<Row>& rows) {
  net::TcpListener listener("127.0.0.1", 0);
  std::barrier<> together(2);
  std::thread other([&] {
    const auto channel =
        net::connect_tcp("127.0.0.1", listener.port(), std::chrono::milliseconds(10'000));
    run_party(1, *channel, n, rows, together);
  });
  const auto channel = listener.accept(std::chrono::milliseconds(10'000));
  run_party(0, *channel, n, rows, together);
  other.join();
}

}  // namespace
}  // namespace privml::floating

int main(int argc, char** argv) {
  const privml::i64 n = argc > 1 ? std::atol(argv[1]) : 10000;
  std::vector<privml::floating::Row> rows = privml::floating::all_rows();
  if (argc > 2) {
    std::erase_if(rows, [&](const privml::floating::Row& row) {
      return std::none_of(argv + 2, argv + argc, [&](const char* s) { return row.name == s; });
    });
  }
  for (const privml::floating::Row& row : rows) privml::floating::print_cost(row);
  if (n > 0) privml::floating::bench(n, rows);
}
