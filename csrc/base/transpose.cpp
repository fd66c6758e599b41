// SPDX-License-Identifier: Apache-2.0
#include "base/transpose.h"

#include "base/transpose_square.h"

namespace privml {
namespace {

// One row in each register; word w of register j comes to hold byte j of row word w.
struct Portable {
  typedef u64 Words __attribute__((vector_size(16)));
  static constexpr int kRows = 64;

  static void load(const u64* rows, i64 stride, int r, Words& v) {
    std::memcpy(&v, rows + r * stride, sizeof v);
  }
  static void gather(Words (&v)[8]) {
    constexpr u64 kMasks[3] = {0x00000000ffffffff, 0x0000ffff0000ffff, 0x00ff00ff00ff00ff};
    exchange_three<8>(v, kMasks);
  }
  static void store(const Words& v, int j, int bit, u64* out) {
    const int column = 8 * j + bit;
    out[2 * column] = v[0];
    out[2 * (column + 64)] = v[1];
  }
};

}  // namespace

void transpose_128_rows(const u64* rows, i64 stride, i64 blocks, u64* out) {
#if defined(__x86_64__)
  static const bool gfni = transpose_gfni_supported();
  if (gfni) return transpose_128_rows_gfni(rows, stride, blocks, out);
  if (__builtin_cpu_supports("avx2")) return transpose_128_rows_avx2(rows, stride, blocks, out);
#endif
  transpose_128_rows_portable(rows, stride, blocks, out);
}

void transpose_128_rows_portable(const u64* rows, i64 stride, i64 blocks, u64* out) {
  transpose_all<Portable>(rows, stride, blocks, out);
}

bool transpose_gfni_supported() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("gfni") && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw");
#else
  return false;
#endif
}

}  // namespace privml
