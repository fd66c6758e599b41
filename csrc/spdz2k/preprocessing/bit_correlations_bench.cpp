// SPDX-License-Identifier: Apache-2.0
// Making of bit correlations for the actively secure engine, and comparisons with everything made
// for them; both parties on two threads of this machine. Seconds, and bytes that each party sends.
// bit_correlations_bench [count]
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "ot/testing/parties.h"
#include "spdz2k/online/comparison.h"
#include "spdz2k/preprocessing/bit_triples.h"
#include "spdz2k/preprocessing/preprocessing.h"
#include "spdz2k/shares/input_output.h"

namespace {

using namespace privml;
using namespace privml::spdz2k;

struct Seconds {
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  double passed() const { return std::chrono::duration<double>(Clock::now() - start).count(); }
};

// Set-up apart, `body` at both parties under a fresh key; prints party 0's figures.
template <class R, class Body>
void measure(const char* name, const ot::OtConfig& ot, i64 n, Body&& body) {
  double seconds = 0, bytes = 0;
  ot::testing::run_session(ot, [&](ot::Party& party) {
    const auto session = make_session<R>(party);
    PreprocessingSupply<R> supply(*session, &party);
    party.channel.flush();
    const i64 before = party.channel.traffic().sent;
    const Seconds clock;
    body(*session, supply);
    party.channel.flush();
    if (party.rank != 0) return;
    seconds = clock.passed();
    bytes = static_cast<double>(party.channel.traffic().sent - before);
  });
  std::printf("%-14s k=%d %-10s n=%-7lld %8.3f s %10.0f per second %10.1f bytes each\n", name, R::k,
              ot.provider.c_str(), static_cast<long long>(n), seconds,
              static_cast<double>(n) / seconds, bytes / static_cast<double>(n));
}

template <class R>
void measure_all(const ot::OtConfig& ot, i64 n) {
  const auto reserve = [](const Demand& demand) {
    return [demand](Session<R>&, PreprocessingSupply<R>& supply) { supply.reserve(demand); };
  };
  Demand triples;
  triples.bit_triples = n;
  measure<R>("bit_triple", ot, n, reserve(triples));
  constexpr i64 kNumbers = 4096, kComparisons = 1000;
  for (const int width : {32, R::k}) {
    Demand numbers;
    numbers.edabits[width] = kNumbers;
    measure<R>(width == 32 ? "edabit 32" : "edabit k", ot, kNumbers, reserve(numbers));
    if (R::k == 32) break;
  }
  // 32-bit comparisons with inputs, preprocessing and the results revealed.
  measure<R>("less_than 32", ot, kComparisons, [&](Session<R>& session, auto& supply) {
    spdz2k::CostMeter meter;
    for (const int owner : {0, 1}) meter.demand.masks[owner] += kComparisons;
    less_than_bits<R>({meter, kComparisons}, {}, {}, 32, Range::restricted, {});
    reveal_bits<R>({meter, kComparisons}, {}, kBothParties, {});
    supply.reserve(meter.demand);
    WordShares<R> x(kComparisons), y(kComparisons);
    BitShares<R> less(kComparisons);
    WipedVector<u64> clear(kComparisons);
    const auto mine = [&](int owner) {
      return owner == session.rank ? std::span<u64>(clear) : std::span<u64>();
    };
    supply.masks(0, x, mine(0));
    supply.masks(1, y, mine(1));
    less_than_bits<R>(session, x, y, 32, Range::restricted, less);
    std::vector<u8> out(kComparisons);
    reveal_bits<R>(session, less, kBothParties, out);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const i64 n = argc > 1 ? std::atoll(argv[1]) : i64{1} << 17;
  for (const char* provider : {"softspoken", "silent"}) {
    const ot::OtConfig ot = ot::testing::test_config(provider, 4, "malicious");
    measure_all<Ring64>(ot, n);
    measure_all<Ring32>(ot, n);
  }
}
