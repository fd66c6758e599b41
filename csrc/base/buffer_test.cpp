// SPDX-License-Identifier: Apache-2.0
#include "base/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "base/multiversion.h"
#include "base/types.h"

namespace privml {
namespace {

TEST(AlignedVector, StorageStartsAtACacheLine) {
  for (size_t size : {1, 3, 64, 1000}) {
    const AlignedVector<u8> bytes(size);
    const WipedVector<u64> words(size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % kCacheLine, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(words.data()) % kCacheLine, 0u);
  }
}

TEST(AlignedVector, ResizeLeavesStorageAlone) {
  AlignedVector<u32> words(100, 7);
  words.clear();
  words.resize(100);
  EXPECT_TRUE(std::all_of(words.begin(), words.end(), [](u32 x) { return x == 7; }));
}

TEST(AlignedVector, KeepsItsValuesWhenItGrowsAndMoves) {
  AlignedVector<u32> words{1, 2, 3};
  words.resize(5000, 9);
  const AlignedVector<u32> moved = std::move(words);
  EXPECT_EQ(moved[2], 3u);
  EXPECT_EQ(moved[4999], 9u);
}

TEST(Wipe, ZeroesExactlyTheRange) {
  u8 bytes[10];
  std::fill(std::begin(bytes), std::end(bytes), 5);
  wipe(bytes + 2, 6);
  wipe(bytes, 0);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(bytes[i], i < 2 || i >= 8 ? 5 : 0);
}

PRIVML_TARGET_CLONES
void multiply_add(const u64* a, const u64* b, i64 count, u64* out) {
  for (i64 i = 0; i < count; ++i) out[i] += a[i] * b[i];
}

TEST(Multiversion, ComputesTheSameAsPlainCode) {
  constexpr i64 kCount = 1001;
  AlignedVector<u64> a(kCount), b(kCount), out(kCount), expected(kCount);
  for (u64 i = 0; i < kCount; ++i) {
    a[i] = i * 0x9e3779b97f4a7c15;
    b[i] = ~i * 0xd1342543de82ef95;
    out[i] = i;
    expected[i] = i + a[i] * b[i];
  }
  multiply_add(a.data(), b.data(), kCount, out.data());
  EXPECT_EQ(out, expected);
}

}  // namespace
}  // namespace privml
