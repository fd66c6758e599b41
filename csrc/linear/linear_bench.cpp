// SPDX-License-Identifier: Apache-2.0
// Speed of products mod 2^32 and 2^64 by backend, one thread: 10^9 products of words a second.
// Arguments: rows inner columns (default 512 512 512).
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "linear/product.h"

namespace privml::linear {
namespace {

double seconds(i64 rows, i64 inner, i64 columns, int bits, Backend backend) {
  std::vector<u64> a(rows * inner), b(inner * columns), out(rows * columns);
  u64 state = 1;
  for (u64& word : a) word = state *= 6364136223846793005;
  for (u64& word : b) word = state *= 6364136223846793005;
  const auto a_row = strided(rows, inner), a_column = strided(inner, 1);
  const auto b_row = strided(inner, columns), b_column = strided(columns, 1);
  const auto out_row = strided(rows, columns);
  double best = 1e9;
  for (int repeat = 0; repeat < 7; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    add_product({a.data(), a_row, a_column}, {b.data(), b_row, b_column}, bits,
                {out.data(), out_row, b_column}, 1, backend);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count());
  }
  return best;
}

}  // namespace
}  // namespace privml::linear

int main(int argc, char** argv) {
  using namespace privml;
  using namespace privml::linear;
  const auto size = [&](int i) { return argc > i ? std::atoll(argv[i]) : 512; };
  const privml::i64 rows = size(1), inner = size(2), columns = size(3);
  const std::pair<Backend, const char*> backends[] = {
      {Backend::portable, "portable"}, {Backend::avx2, "avx2"}, {Backend::avx512, "avx512"}};
  for (const auto& [backend, name] : backends) {
    if (!backend_supported(backend)) continue;
    for (int bits : {32, 64}) {
      const double taken = seconds(rows, inner, columns, bits, backend);
      std::printf("%-8s %d bits %8.2f\n", name, bits, 1e-9 * rows * inner * columns / taken);
    }
  }
}
