// SPDX-License-Identifier: Apache-2.0
#include "twopc/session/lane_pack.h"

#include <gtest/gtest.h>

#include <vector>

#include "crypto/prg.h"

namespace privml::twopc {
namespace {

template <class Word>
void expect_round_trip(int width, i64 count) {
  crypto::Prg prg(crypto::Block{static_cast<u64>(width), static_cast<u64>(count)});
  std::vector<u64> wide(count);
  prg.fill_ring(wide, 64);
  const std::vector<Word> words(wide.begin(), wide.end());
  // Guard bytes behind the packed ones must stay as they are.
  std::vector<u8> bytes(packed_bytes(count, width) + 8, 0xA5);
  lane_pack(words.data(), count, width, bytes.data());
  for (size_t i = bytes.size() - 8; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], 0xA5);
  std::vector<Word> back(count);
  lane_unpack(bytes.data(), count, width, back.data());
  for (i64 i = 0; i < count; ++i)
    ASSERT_EQ(back[i], static_cast<Word>(words[i] & low_mask(width)))
        << width << " " << count << " " << i;
}

TEST(LanePack, RoundTripAtAllWidthsAndGroupBorders) {
  for (i64 count : {0, 1, 2, 7, 8, 255, 256, 257, 511, 512, 1000}) {
    for (int width = 1; width <= 32; ++width) expect_round_trip<u32>(width, count);
    for (int width = 1; width <= 64; ++width) expect_round_trip<u64>(width, count);
  }
}

// Word e of a group lies in lane e mod 8, whose bits follow each other.
TEST(LanePack, LayoutOfAGroup) {
  std::vector<u32> words(256);
  for (u32 e = 0; e < 256; ++e) words[e] = e & 15;
  std::vector<u32> packed(32);
  lane_pack(words.data(), 256, 4, reinterpret_cast<u8*>(packed.data()));
  for (u32 e = 0; e < 256; ++e) {
    const u32 lane = e % 8, slot = e / 8;
    ASSERT_EQ((packed[slot * 4 / 32 * 8 + lane] >> (slot * 4 % 32)) & 15, e & 15);
  }
}

}  // namespace
}  // namespace privml::twopc
