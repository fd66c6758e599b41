// SPDX-License-Identifier: Apache-2.0
// Speed of bit packing and of the bit matrix transposition. Usage: bits_bench [seconds per line]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "base/buffer.h"
#include "base/pack.h"
#include "base/transpose.h"

namespace privml {
namespace {

// The best of several slices of processor time, so that other programs disturb little.
template <class Work>
double nanoseconds(i64 operations, double budget, const Work& work) {
  work();
  double best = 1e9;
  for (int slice = 0; slice < 10; ++slice) {
    i64 repetitions = 0;
    const std::clock_t start = std::clock();
    double seconds = 0;
    do {
      for (int i = 0; i < 8; ++i) work();
      repetitions += 8;
      seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    } while (seconds < budget / 10);
    best = std::min(best, seconds * 1e9 / static_cast<double>(operations * repetitions));
  }
  return best;
}

template <class Value>
void bench_packing(int width, double budget) {
  constexpr i64 kCount = 8192;
  AlignedVector<Value> values(kCount);
  AlignedVector<u8> bytes(kCount * sizeof(Value));
  for (i64 i = 0; i < kCount; ++i) values[i] = static_cast<Value>(i * 0x9e3779b97f4a7c15 >> 3);
  const double in =
      nanoseconds(kCount, budget, [&] { pack(values.data(), kCount, width, bytes.data()); });
  const double out =
      nanoseconds(kCount, budget, [&] { unpack(bytes.data(), kCount, width, values.data()); });
  std::printf("u%-2d width %2d   pack %6.3f   unpack %6.3f ns/value\n",
              static_cast<int>(8 * sizeof(Value)), width, in, out);
}

void run(double budget) {
  for (const int width : {1, 2, 3, 4, 5, 7, 8}) bench_packing<u8>(width, budget);
  for (const int width : {1, 2, 4, 8, 12, 16, 20, 24, 31, 32, 33, 37, 48, 56, 57, 63, 64})
    bench_packing<u64>(width, budget);
  for (const i64 blocks : {1, 8, 64, 1024}) {
    const i64 stride = blocks + 4;
    AlignedVector<u64> rows(static_cast<size_t>(stride * 256)), columns(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = i * 0x9e3779b97f4a7c15;
    for (const bool portable : {false, true}) {
      const auto transpose = portable ? transpose_128_rows_portable : transpose_128_rows;
      const double each = nanoseconds(
          blocks * 128, budget, [&] { transpose(rows.data(), stride, blocks, columns.data()); });
      std::printf("transpose 128 x %-6lld %-8s %6.3f ns/column\n",
                  static_cast<long long>(blocks * 128), portable ? "portable" : "best", each);
    }
  }
}

}  // namespace
}  // namespace privml

int main(int argc, char** argv) { privml::run(argc > 1 ? std::atof(argv[1]) : 0.05); }
