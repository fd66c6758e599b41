// SPDX-License-Identifier: Apache-2.0
#include "base/transpose.h"

#include "base/cpu.h"
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

struct Choice {
  const char* name;
  void (*transpose)(const u64* rows, i64 stride, i64 blocks, u64* out);
};

const Choice& choice() {
  static const Choice chosen = [] {
#if defined(__x86_64__)
    if (cpu_allows(CpuLevel::avx512) && transpose_gfni_supported())
      return Choice{"gfni512", transpose_128_rows_gfni};
    if (cpu_allows(CpuLevel::avx2) && __builtin_cpu_supports("avx2"))
      return Choice{"avx2", transpose_128_rows_avx2};
#endif
    return Choice{"portable", transpose_128_rows_portable};
  }();
  return chosen;
}

}  // namespace

void transpose_128_rows(const u64* rows, i64 stride, i64 blocks, u64* out) {
  choice().transpose(rows, stride, blocks, out);
}

const char* transpose_kernel() { return choice().name; }

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
