// SPDX-License-Identifier: Apache-2.0
#include "crypto/seal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace privml::crypto {
namespace {

using Buffer = std::vector<u8>;

Buffer pattern(i64 size, u8 first) {
  Buffer bytes(size);
  std::iota(bytes.begin(), bytes.end(), first);
  return bytes;
}

const Buffer kKey = pattern(32, 1), kSalt = pattern(16, 100), kContext = pattern(5, 7);

// What `seal` opens it to, or nothing.
Buffer opened(const Seal& seal, const Buffer& sealed, const Buffer& context) {
  Buffer plain(std::max<i64>(std::ssize(sealed) - Seal::kOverhead, 0), 0xee);
  if (seal.open(sealed, context, plain)) return plain;
  for (u8 byte : plain) EXPECT_EQ(byte, 0);
  return {};
}

TEST(Seal, OpensWhatItSealed) {
  const Seal seal(kKey, kSalt);
  for (i64 size : {1, 15, 16, 17, 4096, 100003}) {
    const Buffer plain = pattern(size, 3);
    const Buffer sealed = seal.seal(plain, kContext);
    EXPECT_EQ(std::ssize(sealed), size + Seal::kOverhead);
    EXPECT_EQ(opened(seal, sealed, kContext), plain);
    EXPECT_EQ(opened(Seal(kKey, kSalt), sealed, kContext), plain);
  }
  Buffer nothing;
  EXPECT_TRUE(seal.open(seal.seal(nothing, {}), {}, nothing));
}

TEST(Seal, EverySealIsDifferent) {
  const Seal seal(kKey, kSalt);
  EXPECT_NE(seal.seal(kContext, kContext), seal.seal(kContext, kContext));
}

TEST(Seal, AnyChangedBitIsFound) {
  const Seal seal(kKey, kSalt);
  const Buffer sealed = seal.seal(pattern(9, 3), kContext);
  for (size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
    Buffer changed = sealed;
    changed[bit / 8] ^= u8(1 << bit % 8);
    EXPECT_TRUE(opened(seal, changed, kContext).empty()) << bit;
  }
  for (size_t size = 0; size < sealed.size(); ++size) {
    EXPECT_TRUE(opened(seal, {sealed.begin(), sealed.begin() + size}, kContext).empty()) << size;
  }
  Buffer longer = sealed;
  longer.push_back(0);
  EXPECT_TRUE(opened(seal, longer, kContext).empty());
}

TEST(Seal, AnotherKeySaltOrContextDoesNotOpen) {
  const Seal seal(kKey, kSalt);
  const Buffer sealed = seal.seal(pattern(9, 3), kContext);
  EXPECT_TRUE(opened(seal, sealed, pattern(5, 8)).empty());
  EXPECT_TRUE(opened(seal, sealed, {}).empty());
  EXPECT_TRUE(opened(Seal(pattern(32, 2), kSalt), sealed, kContext).empty());
  EXPECT_TRUE(opened(Seal(kKey, pattern(16, 101)), sealed, kContext).empty());
}

TEST(Seal, RefusesKeysAndSaltsOfOtherSizes) {
  EXPECT_THROW(Seal(pattern(31, 0), kSalt), InvalidArgument);
  EXPECT_THROW(Seal(kKey, pattern(15, 0)), InvalidArgument);
  EXPECT_THROW(Seal(kKey, pattern(65, 0)), InvalidArgument);
}

}  // namespace
}  // namespace privml::crypto
