// SPDX-License-Identifier: Apache-2.0
// Throughput of AES, the generator and the hash on one thread. Usage: aes_bench [seconds per line]
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "crypto/hash.h"
#include "crypto/prg.h"

namespace privml::crypto {
namespace {

template <class Work>
void report(const char* name, const char* detail, i64 blocks, double budget, const Work& work) {
  work();
  i64 repetitions = 0;
  const std::clock_t start = std::clock();  // processor time, so that other programs disturb less
  double seconds = 0;
  do {
    for (int i = 0; i < 16; ++i) work();
    repetitions += 16;
    seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  } while (seconds < budget);
  const double total = static_cast<double>(blocks * repetitions);
  std::printf("%-12s %-10s %6lld blocks %8.2f ns/block %8.3f GB/s\n", name, detail,
              static_cast<long long>(blocks), seconds / total * 1e9, total * 16 / seconds / 1e9);
}

void run(double budget) {
  for (const i64 count : {1, 8, 64, 1024}) {
    std::vector<Block> in(static_cast<size_t>(count)), out(in.size());
    for (const AesBackend backend : kAesBackends) {
      if (!aes_backend_supported(backend)) continue;
      const char* name = aes_backend_name(backend);
      const Aes128 aes(Block{1, 2}, backend);
      report("encrypt", name, count, budget, [&] { aes.encrypt(in.data(), out.data(), count); });
      report("counter", name, count, budget,
             [&] { aes.encrypt_counter(in[0], out.data(), count); });
      report("feedforward", name, count, budget,
             [&] { aes.encrypt_feedforward(in.data(), out.data(), count); });
      report("key", name, count, budget, [&] {
        for (Block& block : out) Aes128({block.lo, 1}, backend).encrypt(&block, &block, 1);
      });
    }
  }
  constexpr i64 kCount = 1024;
  std::vector<Block> in(kCount), out(4 * kCount);
  const CorrelationRobustHash hash(Block{3, 4});
  for (const i64 blocks : {1, 2, 4}) {
    report("expand", std::to_string(blocks).c_str(), kCount * blocks, budget,
           [&] { hash.expand(in.data(), kCount, blocks, out.data()); });
  }
  Prg prg(Block{5, 6});
  report("prg bytes", "", kCount, budget,
         [&] { prg.fill_bytes({reinterpret_cast<u8*>(out.data()), kCount * sizeof(Block)}); });
}

}  // namespace
}  // namespace privml::crypto

int main(int argc, char** argv) { privml::crypto::run(argc > 1 ? std::atof(argv[1]) : 0.05); }
