// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/shares/recycled.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>

namespace privml::spdz2k {
namespace {

TEST(Recycled, AThreadGetsItsLargeBlocksBack) {
  void* first = take_block(100'000);
  give_back_block(first, 100'000);
  // A size that rounds to the same block, and one that does not.
  void* second = take_block(100'500);
  void* other = take_block(200'000);
  EXPECT_EQ(second, first);
  EXPECT_NE(other, first);
  give_back_block(second, 100'500);
  give_back_block(other, 200'000);
}

TEST(Recycled, EverySizeIsAlignedAndWritable) {
  for (const std::size_t size :
       {0, 1, 2, 3, 63, 64, 16383, 16384, 16385, 20479, 20480, 20481, 1 << 20, (1 << 20) + 1}) {
    void* block = take_block(size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0U);
    std::memset(block, 0xff, size);
    give_back_block(block, size);
  }
}

// Vectors may pass from thread to thread and outlive the one they come from.
TEST(Recycled, VectorsCrossThreads) {
  RecycledVector<int> numbers;
  std::thread([&] { numbers.assign(100'000, 7); }).join();
  EXPECT_EQ(numbers.back(), 7);
  std::thread([moved = std::move(numbers)]() mutable { moved = {}; }).join();
}

}  // namespace
}  // namespace privml::spdz2k
