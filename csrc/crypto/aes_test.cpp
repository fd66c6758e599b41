// SPDX-License-Identifier: Apache-2.0
#include "crypto/aes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "crypto/hash.h"
#include "crypto/prg.h"

namespace privml::crypto {
namespace {

Block from_hex(const char* text) {
  u8 bytes[16];
  for (int i = 0; i < 16; ++i) {
    unsigned value = 0;
    sscanf(text + 2 * i, "%2x", &value);
    bytes[i] = static_cast<u8>(value);
  }
  Block block;
  std::memcpy(&block, bytes, 16);
  return block;
}

std::vector<AesBackend> supported() {
  std::vector<AesBackend> all;
  for (AesBackend b : kAesBackends)
    if (aes_backend_supported(b)) all.push_back(b);
  return all;
}

TEST(Aes, VectorsOfTheStandards) {
  struct Vector {
    const char *key, *in, *out;
  };
  // FIPS 197 appendices B and C.1; SP 800-38A F.1.1.
  const Vector vectors[] = {{"2b7e151628aed2a6abf7158809cf4f3c", "3243f6a8885a308d313198a2e0370734",
                             "3925841d02dc09fbdc118597196a0b32"},
                            {"000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff",
                             "69c4e0d86a7b0430d8cdb78070b4c55a"},
                            {"2b7e151628aed2a6abf7158809cf4f3c", "6bc1bee22e409f96e93d7e117393172a",
                             "3ad77bb40d7a3660a89ecaf32466ef97"},
                            {"2b7e151628aed2a6abf7158809cf4f3c", "f69f2445df4f9b17ad2b417be66c3710",
                             "7b0c785e27e8ad3f8223207104725dd4"}};
  for (AesBackend backend : supported())
    for (const Vector& v : vectors) {
      // 33 copies, so that the widest kernel and its remainder both run.
      std::vector<Block> in(33, from_hex(v.in)), out(33);
      Aes128(from_hex(v.key), backend).encrypt(in.data(), out.data(), 33);
      for (const Block& b : out) EXPECT_EQ(b, from_hex(v.out)) << static_cast<int>(backend);
    }
}

TEST(Aes, BackendsAgreeAtEveryLength) {
  Prg random(Block{1, 2});
  const Block key = random.next_block();
  const Aes128 reference(key, AesBackend::portable);
  for (i64 count = 0; count <= 300; ++count) {
    std::vector<Block> in(count), expected(count), out(count);
    random.fill_blocks(in.data(), count);
    for (AesBackend backend : supported()) {
      const Aes128 aes(key, backend);
      reference.encrypt(in.data(), expected.data(), count);
      aes.encrypt(in.data(), out.data(), count);
      EXPECT_EQ(out, expected);
      for (i64 i = 0; i < count; ++i) expected[i] ^= in[i];
      aes.encrypt_feedforward(in.data(), out.data(), count);
      EXPECT_EQ(out, expected);
      out = in;
      aes.encrypt_feedforward(out.data(), out.data(), count);
      EXPECT_EQ(out, expected) << "in place";
    }
  }
}

TEST(Aes, UnsupportedBackendIsRefused) {
  for (AesBackend b : kAesBackends) {
    if (aes_backend_supported(b)) {
      EXPECT_NO_THROW(Aes128(Block{1, 2}, b));
    } else {
      EXPECT_THROW(Aes128(Block{1, 2}, b), InvalidArgument);
    }
  }
  EXPECT_TRUE(aes_backend_supported(AesBackend::portable));
  EXPECT_TRUE(aes_backend_supported(best_aes_backend()));
}

TEST(Aes, KeySchedulesAgree) {
  Prg random(Block{7, 7});
  for (int i = 0; i < 100; ++i) {
    const Block key = random.next_block(), in = random.next_block();
    Block expected;
    Aes128(key, AesBackend::portable).encrypt(&in, &expected, 1);
    for (AesBackend backend : supported()) {
      Block out;
      Aes128(key, backend).encrypt(&in, &out, 1);
      EXPECT_EQ(out, expected);
    }
  }
}

TEST(Aes, CounterCarriesIntoTheUpperHalf) {
  for (u64 before_carry : {0, 3, 16, 40, 1000}) {
    for (i64 count : {1, 6, 16, 33, 300}) {
      const Block first{u64{0} - before_carry, 41};
      std::vector<Block> counters(count), expected(count), out(count);
      for (i64 i = 0; i < count; ++i) {
        const u64 lo = first.lo + static_cast<u64>(i);
        counters[i] = {lo, first.hi + (lo < first.lo)};
      }
      for (AesBackend backend : supported()) {
        const Aes128 aes(Block{5, 6}, backend);
        aes.encrypt(counters.data(), expected.data(), count);
        aes.encrypt_counter(first, out.data(), count);
        EXPECT_EQ(out, expected) << before_carry << " " << count;
      }
    }
  }
}

TEST(Prg, OneStreamHoweverItIsRead) {
  std::vector<Block> whole(300), parts(300);
  Prg(Block{3, 4}).fill_blocks(whole.data(), 300);
  Prg prg(Block{3, 4});
  prg.fill_blocks(parts.data(), 1);
  prg.fill_blocks(parts.data() + 1, 255);
  prg.fill_blocks(parts.data() + 256, 44);
  EXPECT_EQ(whole, parts);
}

TEST(Prg, StreamIsAesOfTheCounter) {
  const Block seed{11, 12};
  std::vector<Block> stream(5);
  Prg(seed).fill_blocks(stream.data(), 5);
  for (u64 i = 0; i < 5; ++i) {
    Block block{i, 0};
    Aes128(seed, AesBackend::portable).encrypt(&block, &block, 1);
    EXPECT_EQ(stream[i], block);
  }
}

TEST(Prg, BytesOfEveryLengthAreWholeBlocksCutShort) {
  std::vector<Block> blocks(401);
  Prg(Block{8, 8}).fill_blocks(blocks.data(), 401);
  const u8* expected = reinterpret_cast<const u8*>(blocks.data());
  for (size_t size : {0, 1, 15, 16, 17, 4095, 4096, 4097, 6399}) {
    std::vector<u8> bytes(size + 1, 0x5a);
    Prg prg(Block{8, 8});
    prg.fill_bytes({bytes.data(), size});
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end() - 1, expected)) << size;
    EXPECT_EQ(bytes[size], 0x5a);
    EXPECT_EQ(prg.next_block(), blocks[(size + 15) / 16]) << "no block is used twice";
  }
}

TEST(Prg, RingElementsAndBitsStayInRange) {
  Prg prg(Block{9, 9});
  std::vector<u64> words(1000);
  prg.fill_ring(words, 5);
  u64 all = 0;
  for (u64 w : words) all |= w;
  EXPECT_EQ(all, 31u);
  std::vector<u8> bits(1000);
  prg.fill_bits(bits);
  int ones = 0;
  for (u8 b : bits) {
    ASSERT_LE(b, 1);
    ones += b;
  }
  EXPECT_GT(ones, 400);
  EXPECT_LT(ones, 600);
}

TEST(Prg, OperatingSystemRandomnessDiffers) {
  EXPECT_FALSE(os_random_block() == os_random_block());
}

TEST(Hash, ExpansionOfOneBlockIsTheHash) {
  const CorrelationRobustHash hash(Block{1, 1});
  std::vector<Block> in(20), one(20), three(60);
  Prg(Block{2, 2}).fill_blocks(in.data(), 20);
  hash.hash(in.data(), one.data(), 20);
  std::vector<Block> expanded(20);
  hash.expand(in.data(), 20, 1, expanded.data());
  EXPECT_EQ(one, expanded);
  hash.expand(in.data(), 20, 3, three.data());
  for (int i = 0; i < 60; ++i)
    for (int j = 0; j < i; ++j) ASSERT_FALSE(three[i] == three[j]);
}

TEST(Hash, IsTheFixedKeyPermutationWithFeedforward) {
  const Block key{21, 22};
  const CorrelationRobustHash hash(key);
  const Aes128 permutation(key);
  const auto definition = [&](Block x) {
    Block y;
    permutation.encrypt(&x, &y, 1);
    return y ^ x;
  };
  // Counts around the size of a tile and expansions longer than one.
  for (i64 count : {0, 1, 2, 63, 64, 65, 200}) {
    for (i64 blocks : {1, 2, 3, 16, 1500}) {
      if (count * blocks > 20'000) continue;
      std::vector<Block> in(count), out(count * blocks);
      Prg(Block{3, static_cast<u64>(count)}).fill_blocks(in.data(), count);
      hash.expand(in.data(), count, blocks, out.data());
      for (i64 i = 0; i < count * blocks; i += blocks > 100 ? 97 : 1) {
        const Block seed = definition(in[i / blocks]);
        const Block expected =
            blocks == 1 ? seed : definition(Block{seed.lo ^ static_cast<u64>(i % blocks), seed.hi});
        ASSERT_EQ(out[i], expected) << count << " x " << blocks << " at " << i;
      }
    }
  }
}

}  // namespace
}  // namespace privml::crypto
