// SPDX-License-Identifier: Apache-2.0
// Making of bit correlations, both parties on two threads of this machine: seconds and bytes.
// bit_correlations_bench [count] [provider]
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "ot/parties_testing.h"
#include "spdz2k/bit_triples.h"
#include "spdz2k/bucketing.h"
#include "spdz2k/ideal.h"

namespace {

using namespace privml;
using namespace privml::spdz2k;

constexpr Block kSeed{0x452821e638d01377, 0xbe5466cf34e90c6c};

template <class R>
void bench_bit_triples(const OtConfig& ot, i64 n) {
  double seconds = 0;
  const auto record = privml::testing::run_session(ot, [&](Party& party) {
    const auto supply = make_ideal_supply<R>(kSeed, party.rank);
    Session<R> session(party.rank, party.channel, party.prg, ideal_key<R>(kSeed, party.rank));
    session.set_supply(*supply);
    BitShares<R> x(n), y(n), z(n);
    const auto start = std::chrono::steady_clock::now();
    generate_bit_triples<R>(session, party, x, y, z);
    if (party.rank == 0) {
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
      seconds = passed.count();
    }
  });
  std::printf(
      "bit_triple k=%d %s n=%lld buckets of %d: %.3f s, %.0f per second, %.1f bytes each way\n",
      R::k, ot.provider.c_str(), static_cast<long long>(n), bit_triple_bucket<R>(n), seconds,
      static_cast<double>(n) / seconds,
      static_cast<double>(record.traffic[0].sent) / static_cast<double>(n));
}

}  // namespace

int main(int argc, char** argv) {
  const i64 n = argc > 1 ? std::atoll(argv[1]) : i64{1} << 17;
  for (const char* provider : {"softspoken", "silent"}) {
    const OtConfig ot = privml::testing::test_config(provider, 4, "malicious");
    bench_bit_triples<Ring64>(ot, n);
    bench_bit_triples<Ring32>(ot, n);
  }
}
