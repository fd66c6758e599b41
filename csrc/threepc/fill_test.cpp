// SPDX-License-Identifier: Apache-2.0
#include "threepc/fill.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <string>

#include "base/error.h"
#include "threepc/testing/shares.h"

namespace privml::threepc {
namespace {

using Block = std::array<u32, 16>;

Block block(const u32* key, u64 counter, u32 attempt = 0) {
  Block out;
  u32 words[16];
  chacha20(key, counter, attempt, words);
  std::copy(words, words + 16, out.begin());
  return out;
}

std::string hex(const Block& words) {
  std::string text;
  for (u32 word : words)
    for (int k = 0; k < 4; ++k) {
      const char* digits = "0123456789abcdef";
      text += digits[word >> (8 * k + 4) & 15];
      text += digits[word >> 8 * k & 15];
    }
  return text;
}

TEST(ChaCha20, VectorsOfRfc8439) {
  u32 key[8];
  for (u32 k = 0; k < 8; ++k) key[k] = 0x03020100 + 0x04040404 * k;
  // Section 2.3.2: counter 1, nonce 00000009 0000004a 00000000, whose first word is here the high
  // word of the counter and whose second is the attempt.
  EXPECT_EQ(hex(block(key, 1 | u64{0x09000000} << 32, 0x4a000000)),
            "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
            "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e");
  // Appendix A.1, vectors 1, 2 and 4.
  const u32 zero[8] = {};
  EXPECT_EQ(hex(block(zero, 0)),
            "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
            "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586");
  EXPECT_EQ(hex(block(zero, 1)),
            "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
            "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f");
  const u32 second[8] = {0xff00};
  EXPECT_EQ(hex(block(second, 2)),
            "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"
            "13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096");
}

// Counters that run over 2^32 and 2^64 included.
TEST(Fill, WordsAreTheKeystreamInItsOrder) {
  for (const auto backend : supported_backends()) {
    for (u64 counter : {u64{7}, (u64{1} << 32) - 5, ~u64{0} - 3}) {
      for (i64 count : {1, 15, 16, 129, 1000}) {
        for (int bits : {1, 31, 32, 33, 64}) {
          Elements out(count + 1, -7);
          FillJob job{kDealKey, counter, count, bits, 0, nullptr, out.data(), nullptr};
          fill_words(job, {1, backend});
          EXPECT_EQ(out.back(), -7);
          const i64 per = bits <= 32 ? 256 : 128;
          EXPECT_EQ(words_blocks(count, bits), (count + per - 1) / per * 16);
          Elements reduced(count), minuend(count, 12345);
          job.minuend = minuend.data();
          job.words = reduced.data();
          fill_words(job, {2, backend});
          for (i64 i = 0; i < count; ++i) {
            const i64 at = i % per;
            const Block b = block(kDealKey, counter + i / per * 16 + at % 16);
            const u64 word =
                bits <= 32 ? b[at / 16] : b[at / 16 * 2] | u64{b[at / 16 * 2 + 1]} << 32;
            const u64 mask = bits == 64 ? ~u64{0} : (u64{1} << bits) - 1;
            ASSERT_EQ(static_cast<u64>(out[i]), word & mask);
            ASSERT_EQ(static_cast<u64>(reduced[i]), (12345 - word) & mask);
          }
        }
      }
    }
  }
}

TEST(Fill, BitsAreTheKeystream) {
  for (const auto backend : supported_backends()) {
    const i64 count = 8192 + 77;
    Numbers out(count + 1, 0xee);
    fill_bits({kDealKey, 3, count, 1, 0, nullptr, nullptr, out.data()}, {1, backend});
    EXPECT_EQ(out.back(), 0xee);
    for (i64 i = 0; i < count; ++i) {
      const i64 word = i / 32 % 256;
      const Block b = block(kDealKey, 3 + i / 8192 * 16 + word % 16);
      ASSERT_EQ(out[i], b[word / 16] >> i % 32 & 1);
    }
  }
}

// The numbers of one lane: byte `lane` of the words of block `counter`.
std::array<u8, 16> sampled_lane(u64 counter, int lane, u32 modulus) {
  int width = 1;
  while (1u << width < modulus) ++width;
  const u32 mask = (1u << width) - 1;
  const int unused = 8 - width, each = (width + unused - 1) / unused;
  std::array<u8, 16> out;
  std::vector<int> lacking(16);
  std::iota(lacking.begin(), lacking.end(), 0);
  for (u32 attempt = 0; !lacking.empty(); ++attempt) {
    const Block b = block(kDealKey, counter, attempt);
    const auto byte = [&](int k) { return b[k] >> 8 * lane & 0xff; };
    std::erase_if(lacking, [&](int k) {
      out[k] = static_cast<u8>(byte(k) & mask);
      return out[k] < modulus;
    });
    for (int first = 0; first + each <= 16; first += each) {
      u32 spare = 0;
      for (int i = 0; i < each; ++i) spare |= byte(first + i) >> width << unused * i;
      spare &= mask;
      if (spare >= modulus || lacking.empty()) continue;
      out[lacking.front()] = static_cast<u8>(spare);
      lacking.erase(lacking.begin());
    }
  }
  return out;
}

u8 sampled(u64 counter, i64 i, u32 modulus) {
  const i64 at = i % 1024;
  return sampled_lane(counter + i / 1024 * 16 + at % 64 / 4, at % 4, modulus)[at / 64];
}

TEST(Fill, NumbersAreSampledByRejection) {
  for (const auto backend : supported_backends()) {
    for (u32 modulus : {1u, 2u, 3u, 32u, 37u, 61u, 67u, 126u, 127u, 128u}) {
      const i64 count = 2048 + 61;
      Numbers out(count + 1, 0xee);
      fill_field({kDealKey, 9, count, 8, modulus, nullptr, nullptr, out.data()}, {1, backend});
      EXPECT_EQ(out.back(), 0xee);
      for (i64 i = 0; i < count; ++i) ASSERT_EQ(out[i], sampled(9, i, modulus)) << modulus;
    }
  }
}

// Chi-square against the uniform distribution; the key is fixed, so the test never varies.
TEST(Fill, NumbersAreUniform) {
  for (u32 modulus : {5u, 32u, 67u, 126u, 127u}) {
    const i64 count = 1 << 20;
    Numbers out(count);
    fill_field({kMaskKey, 0, count, 8, modulus, nullptr, nullptr, out.data()});
    std::vector<double> seen(modulus);
    for (u8 v : out) ++seen[v];
    const double expected = static_cast<double>(count) / modulus;
    double chi = 0;
    for (double s : seen) chi += (s - expected) * (s - expected) / expected;
    EXPECT_LT(chi, modulus + 6 * std::sqrt(2.0 * modulus)) << modulus;
  }
}

TEST(Fill, RefusesWhatItCannot) {
  u8 byte;
  EXPECT_THROW(fill_field({kDealKey, 0, 1, 8, 129, nullptr, nullptr, &byte}), InvalidArgument);
  EXPECT_THROW(fill_field({kDealKey, 0, 1, 8, 0, nullptr, nullptr, &byte}), InvalidArgument);
  i64 word;
  EXPECT_THROW(fill_words({kDealKey, 0, 1, 65, 0, nullptr, &word, nullptr}), InvalidArgument);
  EXPECT_THROW(fill_words({kDealKey, 0, 1, 64, 0, nullptr, &word, nullptr}, {0}), InvalidArgument);
}

}  // namespace
}  // namespace privml::threepc
