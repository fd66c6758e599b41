// SPDX-License-Identifier: Apache-2.0
#include "base/pack.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/error.h"

namespace privml {
namespace {

u64 bits_at(const std::vector<u8>& bytes, i64 first, int width) {
  u64 value = 0;
  for (int i = 0; i < width; ++i)
    value |= u64{bytes[(first + i) / 8] >> ((first + i) % 8) & 1u} << i;
  return value;
}

template <class Value>
void check(int width, i64 count) {
  std::mt19937_64 random(static_cast<u64>(width * 1000 + count));
  std::vector<Value> values(count), back(count);
  for (Value& v : values) v = static_cast<Value>(random());
  const i64 size = packed_bytes(count, width);
  std::vector<u8> bytes(size + 1, 0xa5);
  pack(values.data(), count, width, bytes.data());
  EXPECT_EQ(bytes[size], 0xa5) << "wrote past the end";
  for (i64 i = 0; i < count; ++i)
    ASSERT_EQ(bits_at(bytes, i * width, width), values[i] & low_mask(width)) << width << " " << i;
  const int unused = static_cast<int>(size * 8 - count * width);
  if (unused > 0) {
    EXPECT_EQ(bytes[size - 1] >> (8 - unused), 0);
  }
  bytes.resize(size);  // lets the sanitizer see a read past the end
  bytes.shrink_to_fit();
  unpack(bytes.data(), count, width, back.data());
  for (i64 i = 0; i < count; ++i)
    ASSERT_EQ(back[i], values[i] & low_mask(width)) << width << " " << i;
}

TEST(Pack, WordsOfEveryWidth) {
  for (int width = 1; width <= 64; ++width) {
    for (i64 count = 0; count <= 72; ++count) check<u64>(width, count);
    check<u64>(width, 1000);
  }
}

TEST(Pack, BytesOfEveryWidth) {
  for (int width = 1; width <= 8; ++width) {
    for (i64 count = 0; count <= 150; ++count) check<u8>(width, count);
    check<u8>(width, 1000);
  }
}

TEST(Pack, PartsOfWholeBytesMakeTheWhole) {
  std::vector<u64> values(96);
  for (size_t i = 0; i < values.size(); ++i) values[i] = i * 0x9e3779b97f4a7c15;
  for (int width : {1, 5, 37, 64}) {
    std::vector<u8> whole(packed_bytes(96, width)), parts(whole.size());
    pack(values.data(), 96, width, whole.data());
    for (i64 first : {0, 8, 40}) {
      const i64 count = first == 0 ? 8 : first == 8 ? 32 : 56;
      pack(values.data() + first, count, width, parts.data() + packed_bytes(first, width));
    }
    EXPECT_EQ(whole, parts);
  }
}

TEST(Pack, OtherWidthsAreRefused) {
  u64 word = 0;
  u8 bytes[16] = {};
  EXPECT_THROW(pack(&word, 1, 0, bytes), InvalidArgument);
  EXPECT_THROW(pack(&word, 1, 65, bytes), InvalidArgument);
  EXPECT_THROW(unpack(bytes, 1, 9, bytes + 8), InvalidArgument);
}

}  // namespace
}  // namespace privml
