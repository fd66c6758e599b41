// SPDX-License-Identifier: Apache-2.0
#include "threepc/sign.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "threepc/testing/shares.h"

namespace privml::threepc {
namespace {

void expect_signs(const SignCase& c, const Loops& loops = {}) {
  const SignLists lists = run_sign(c, loops);
  for (i64 i = 0; i < c.count(); ++i) {
    ASSERT_EQ(sign_from(c, i, lists.zero[i]), clear_sign(c, i))
        << "bits " << c.field.bits << " p " << c.field.prime << " m " << c.m[i] << " r " << c.r[i]
        << " delta " << int{c.delta[i]} << " rotation " << int{c.rotation[i]};
  }
}

int smallest_prime_above(int bits) {
  for (int p = bits + 1;; ++p) {
    bool prime = true;
    for (int d = 2; d * d <= p; ++d) prime = prime && p % d != 0;
    if (prime) return p;
  }
}

// Every m, r (among them r = 0 mod 2^(bits-1)) and delta, with random rotations.
SignCase all_pairs(int bits, int prime) {
  SignCase c;
  c.field = sign_field(bits, prime);
  for (int delta : {0, 1})
    for (i64 m = 0; m < 1 << bits; ++m)
      for (i64 r = 0; r < 1 << bits; ++r) {
        c.m.push_back(m);
        c.r.push_back(r);
        c.delta.push_back(static_cast<u8>(delta));
      }
  const Numbers deltas = c.delta;
  c.draw(bits);
  c.delta = deltas;
  return c;
}

TEST(Sign, ExhaustiveAtSmallWidths) {
  for (int bits = 2; bits <= 8; ++bits) {
    for (int prime : {smallest_prime_above(bits), 37, 127}) expect_signs(all_pairs(bits, prime));
  }
}

TEST(Sign, EveryRotationOfEveryPair) {
  for (int bits : {2, 3, 4, 5}) {
    for (int amount = 0; amount < bits; ++amount) {
      SignCase c = all_pairs(bits, 127);
      std::fill(c.rotation.begin(), c.rotation.end(), static_cast<u8>(amount));
      expect_signs(c);
    }
  }
}

SignCase random_case(int bits, int prime, i64 count, u64 seed) {
  SignCase c;
  c.field = sign_field(bits, prime);
  std::mt19937_64 random(seed);
  const u64 half = u64{1} << (bits - 1);
  const u64 edges[] = {0, 1, half - 1, half, half + 1, ~u64{0}};
  for (i64 i = 0; i < count; ++i) {
    const u64 r = i % 3 == 0 ? edges[i / 3 % 6] : random();
    const u64 x = i % 4 == 0 ? edges[i / 12 % 6] : i % 4 == 1 ? random() % 1000 : random();
    c.r.push_back(static_cast<i64>(r));
    c.m.push_back(static_cast<i64>(x + r));  // bits above `bits` are ignored
  }
  c.draw(seed + 1);
  return c;
}

TEST(Sign, RandomAndExtremeAtRealWidths) {
  struct Width {
    int bits, prime;
  };
  for (auto [bits, prime] : {Width{32, 127},
                             {32, 37},
                             {32, 61},
                             {32, 67},
                             {64, 127},
                             {64, 67},
                             {37, 127},
                             {63, 67},
                             {60, 61},
                             {33, 37}}) {
    expect_signs(random_case(bits, prime, 5000, bits));
  }
}

TEST(Sign, AnyCountAndAnyNumberOfThreads) {
  for (i64 count : {1, 2, 3, 4, 5, 63, 64, 65, 127, 128, 1000}) {
    const SignCase c = random_case(32, 127, count, 3);
    expect_signs(c);
    const SignLists one = run_sign(c, {1}), three = run_sign(c, {3});
    EXPECT_EQ(one.first, three.first);
    EXPECT_EQ(one.second, three.second);
    EXPECT_EQ(one.dealt, three.dealt);
    EXPECT_EQ(one.zero, three.zero);
  }
  SignCase empty;
  empty.field = sign_field(32, 127);
  EXPECT_TRUE(run_sign(empty).first.empty());
}

TEST(Sign, InstructionSetsAndReductionsAgree) {
  for (int bits : {7, 32, 64}) {
    for (int prime : {67, 127}) {
      const SignCase c = random_case(bits, prime, 777, 5);
      const SignLists expected = run_sign(c, {1, KernelBackend::portable});
      for (const auto backend : supported_backends()) {
        for (bool barrett : {false, true}) {
          SignCase other = c;
          other.field.barrett = barrett;
          const SignLists lists = run_sign(other, {1, backend});
          EXPECT_EQ(lists.dealt, expected.dealt);
          EXPECT_EQ(lists.first, expected.first);
          EXPECT_EQ(lists.second, expected.second);
          EXPECT_EQ(lists.zero, expected.zero);
        }
      }
    }
  }
}

TEST(Sign, SizesOfTheLists) {
  EXPECT_EQ(mask_bytes(sign_field(32, 127), 1000), 1000 * 32 * 7 / 8);
  EXPECT_EQ(mask_bytes(sign_field(64, 127), 1000), 1000 * 64 * 7 / 8);
  EXPECT_EQ(mask_bytes(sign_field(32, 61), 1000), 1000 * 32 * 6 / 8);
  EXPECT_EQ(deal_bytes(sign_field(32, 127), 1000), 1000 * 28);
  EXPECT_EQ(deal_bytes(sign_field(64, 127), 1000), 1000 * 56);
  EXPECT_EQ(mask_blocks(32, 65), 2 * 2 * 2 * 16);
  EXPECT_EQ(deal_blocks(17, 65), 2 * 1 * 16);
}

TEST(Sign, OneDealServesManyComparisons) {
  SignCase c = random_case(32, 127, 500, 8);
  for (int i = 0; i < 3; ++i) {
    expect_signs(c);
    for (auto& m : c.m) m -= 100000 * (i + 1);
    c.mask_counter += mask_blocks(c.field.bits, c.count());
    c.draw(i);
  }
}

TEST(Sign, RefusesWhatItCannot) {
  EXPECT_THROW(sign_field(1, 127), InvalidArgument);
  EXPECT_THROW(sign_field(65, 127), InvalidArgument);
  EXPECT_THROW(sign_field(64, 61), InvalidArgument);
  EXPECT_THROW(sign_field(32, 63), InvalidArgument);
  EXPECT_THROW(sign_field(32, 131), InvalidArgument);
  u8 byte = 0;
  i64 word = 0;
  MaskJob job{};
  job.field = sign_field(32, 127);
  job.m = &word;
  job.delta = job.rotation = &byte;
  job.count = 1;
  job.mask_key = kMaskKey;
  EXPECT_THROW(mask_sign(job), InvalidArgument);
  job.party = 2;
  EXPECT_THROW(mask_sign(job), InvalidArgument);
}

}  // namespace
}  // namespace privml::threepc
