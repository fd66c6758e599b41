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

TEST(Transpose, EveryBitMovesToItsPlace) {
  std::mt19937_64 random(7);
  for (i64 blocks : {1, 2, 3, 8}) {
    std::vector<Block16> rows(128 * blocks), out(128 * blocks);
    for (Block16& b : rows) b = {random(), random()};
    transpose_128(rows.data(), blocks, out.data());
    for (i64 r = 0; r < 128; ++r)
      for (i64 c = 0; c < 128 * blocks; ++c)
        ASSERT_EQ(bit(out[c], r), bit(rows[r * blocks + c / 128], c % 128)) << r << " " << c;
  }
}

}  // namespace
}  // namespace privml
