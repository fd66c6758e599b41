// SPDX-License-Identifier: Apache-2.0
#include "base/transpose.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace privml {
namespace {

struct alignas(16) Block16 {
  u64 lo, hi;
};

u64 bit(const Block16& b, i64 i) { return (i < 64 ? b.lo >> i : b.hi >> (i - 64)) & 1; }

using Transpose = void (*)(const u64*, i64, i64, u64*);

void check(Transpose transpose) {
  std::mt19937_64 random(7);
  for (i64 blocks : {1, 2, 3, 4, 5, 8, 13}) {
    for (const i64 stride : {blocks, blocks + 3}) {
      // Nothing after the last column is touched.
      std::vector<Block16> rows(127 * stride + blocks), out(128 * blocks + 1);
      for (Block16& b : rows) b = {random(), random()};
      transpose(&rows[0].lo, stride, blocks, &out[0].lo);
      for (i64 r = 0; r < 128; ++r)
        for (i64 c = 0; c < 128 * blocks; ++c)
          ASSERT_EQ(bit(out[c], r), bit(rows[r * stride + c / 128], c % 128)) << r << " " << c;
      EXPECT_EQ(out.back().lo | out.back().hi, u64{0});
    }
  }
}

TEST(Transpose, EveryBitMovesToItsPlace) { check(transpose_128_rows); }
TEST(Transpose, PortablyToo) { check(transpose_128_rows_portable); }
#if defined(__x86_64__)
TEST(Transpose, WithAvx2Too) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this processor has no AVX2";
  check(transpose_128_rows_avx2);
}
TEST(Transpose, WithGfniToo) {
  if (!transpose_gfni_supported()) GTEST_SKIP() << "this processor has no GFNI or AVX-512";
  check(transpose_128_rows_gfni);
}
#endif

}  // namespace
}  // namespace privml
