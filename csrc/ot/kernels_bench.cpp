// SPDX-License-Identifier: Apache-2.0
// The loops of OT extension on one thread, with every AES backend of this machine: nanoseconds per
// correlation, the best of several slices of processor time. Usage: kernels_bench [seconds a line]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/transpose.h"
#include "crypto/gf128.h"
#include "crypto/lane_digest.h"
#include "crypto/prg.h"
#include "ot/half_tree.h"
#include "ot/lpn.h"
#include "ot/softspoken_rows.h"

namespace privml::ot {
namespace {

template <class Work>
double nanoseconds(i64 operations, double budget, const Work& work) {
  work();
  double best = 1e9;
  for (int slice = 0; slice < 10; ++slice) {
    i64 repetitions = 0;
    const std::clock_t start = std::clock();
    double seconds = 0;
    do {
      work();
      ++repetitions;
      seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    } while (seconds < budget / 10);
    best = std::min(best, seconds * 1e9 / static_cast<double>(operations * repetitions));
  }
  return best;
}

void report(const char* name, const char* kernel, double each) {
  std::printf("%-24s %-10s %8.3f ns\n", name, kernel, each);
  std::fflush(stdout);
}

void bench_silent(crypto::AesBackend backend, double budget) {
  constexpr int kDepth = kLpnMain.depth;
  constexpr i64 kLeaves = kLpnMain.leaves(), kTrees = 64;
  const crypto::Aes128 pi(crypto::Block{1, 2}, backend);
  const LpnCode code({3, 4}, kLpnMain.secret, backend);
  AlignedVector<crypto::Block> secret(kLpnMain.secret), rows(kTrees * kLeaves), sums(kDepth);
  crypto::Prg(crypto::Block{5, 6}).fill_blocks(secret.data(), kLpnMain.secret);
  crypto::Prg(crypto::Block{7, 8}).fill_blocks(rows.data(), std::ssize(rows));
  report("tree, sender", crypto::aes_backend_name(backend), nanoseconds(kLeaves, budget, [&] {
           half_tree_expand(pi, {9, 10}, {1, 1}, kDepth, rows.data(), sums.data());
         }));
  report("tree, receiver", crypto::aes_backend_name(backend), nanoseconds(kLeaves, budget, [&] {
           half_tree_puncture(pi, sums.data(), 77, kDepth, rows.data());
         }));
  report("code", crypto::aes_backend_name(backend), nanoseconds(kTrees * kLeaves, budget, [&] {
           for (i64 i = 0; i < kTrees; ++i)
             code.encode(0, i * kLeaves, secret.data(), 5, rows.data() + i * kLeaves, kLeaves);
         }));
  report("trees and code", crypto::aes_backend_name(backend),
         nanoseconds(kTrees * kLeaves, budget, [&] {
           for (i64 i = 0; i < kTrees; ++i) {
             crypto::Block* leaves = rows.data() + i * kLeaves;
             half_tree_puncture(pi, sums.data(), 77, kDepth, leaves);
             code.encode(0, i * kLeaves, secret.data(), 5, leaves, kLeaves);
           }
         }));
}

void bench_rows(int k, crypto::AesBackend backend, double budget) {
  SoftSpokenRows rows(k, backend);
  for (const OffsetElement& element : rows.elements()) {
    WipedVector<crypto::Block> leaves(i64{1} << element.bits);
    crypto::Prg(crypto::Block{static_cast<u64>(element.first_bit), 1})
        .fill_blocks(leaves.data(), std::ssize(leaves));
    rows.add_seeds(leaves);
  }
  constexpr i64 kBlocks = SoftSpokenRows::kSlice / 128;
  const std::string name = "rows, k = " + std::to_string(k);
  report(name.c_str(), crypto::aes_backend_name(backend),
         nanoseconds(SoftSpokenRows::kSlice, budget,
                     [&] { rows.expand(kBlocks, [](i64, const crypto::Block*) {}); }));
}

// What does not depend on the backend but on PRIVML_CPU.
void bench_rest(double budget) {
  constexpr i64 kSlice = SoftSpokenRows::kSlice, kBlocks = kSlice / 128, kStride = kBlocks + 4;
  AlignedVector<crypto::Block> rows(128 * kStride), columns(kSlice), coefficients(kBlocks);
  crypto::Prg(crypto::Block{1, 1}).fill_blocks(rows.data(), std::ssize(rows));
  crypto::Prg(crypto::Block{2, 1}).fill_blocks(coefficients.data(), kBlocks);
  report("transpose", transpose_kernel(), nanoseconds(kSlice, budget, [&] {
           transpose_128(rows.data(), kStride, kBlocks, columns.data());
         }));
  std::vector<crypto::WideProduct> sums(128);
  report("check of 128 rows", crypto::gf128_kernel(), nanoseconds(kSlice, budget, [&] {
           crypto::gf128_inner_products(rows.data(), 128, kStride, coefficients.data(), kBlocks,
                                        sums.data());
         }));
  report("digest, 16 bytes", crypto::lane_digest_kernel(), nanoseconds(kSlice, budget, [&] {
           crypto::lane_digest(
               {reinterpret_cast<const u8*>(columns.data()), kSlice * sizeof(crypto::Block)});
         }));
  report("add selected, 128 rows", "compiler", nanoseconds(kSlice, budget, [&] {
           for (i64 r = 0; r < 127; ++r)
             xor_selected(r & 1, rows.data() + kStride * (r + 1), kBlocks,
                          rows.data() + kStride * r);
         }));
}

void run(double budget) {
  for (const crypto::AesBackend backend : crypto::kAesBackends) {
    if (backend > crypto::best_aes_backend() || !crypto::aes_backend_supported(backend)) continue;
    bench_silent(backend, budget);
    for (const int k : {1, 2, 4, 8}) bench_rows(k, backend, budget);
  }
  bench_rest(budget);
}

}  // namespace
}  // namespace privml::ot

int main(int argc, char** argv) { privml::ot::run(argc > 1 ? std::atof(argv[1]) : 0.2); }
