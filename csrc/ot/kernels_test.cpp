// SPDX-License-Identifier: Apache-2.0
// The loops of every AES backend of this machine against the portable ones.
#include "ot/kernels.h"

#include <gtest/gtest.h>

#include <vector>

#include "crypto/prg.h"
#include "ot/half_tree.h"
#include "ot/lpn.h"
#include "ot/vole_fold.h"

namespace privml::ot {
namespace {

std::vector<crypto::Block> random_blocks(crypto::Block seed, i64 count) {
  std::vector<crypto::Block> blocks(count);
  crypto::Prg(seed).fill_blocks(blocks.data(), count);
  return blocks;
}

class OtKernels : public testing::TestWithParam<crypto::AesBackend> {
 protected:
  void SetUp() override {
    if (!crypto::aes_backend_supported(GetParam()))
      GTEST_SKIP() << "this processor lacks the instructions";
  }
};

struct Tree {
  std::vector<crypto::Block> leaves, sums;
  friend bool operator==(const Tree&, const Tree&) = default;
};

TEST_P(OtKernels, GrowTheSameTrees) {
  const crypto::Block offset{0x123456789abcdef1, 5}, key{3, 4};
  const crypto::Aes128 portable(key, crypto::AesBackend::portable), wide(key, GetParam());
  for (int depth = 1; depth <= 11; ++depth) {
    const auto expand = [&](const crypto::Aes128& pi) {
      Tree tree{std::vector<crypto::Block>(i64{1} << depth), std::vector<crypto::Block>(depth)};
      half_tree_expand(pi, {7, 8}, offset, depth, tree.leaves.data(), tree.sums.data());
      return tree;
    };
    const Tree tree = expand(portable);
    EXPECT_EQ(expand(wide), tree);
    const u64 last = (u64{1} << depth) - 1;
    for (u64 hole : {u64{0}, last, 0x5a5 & last, 0x2da & last}) {
      const auto puncture = [&](const crypto::Aes128& pi) {
        // Any sums do: nodes are a function of them.
        std::vector<crypto::Block> leaves(last + 1);
        half_tree_puncture(pi, tree.sums.data(), hole, depth, leaves.data());
        return leaves;
      };
      ASSERT_EQ(puncture(wide), puncture(portable)) << depth << " " << hole;
    }
  }
}

TEST_P(OtKernels, AddTheSameRows) {
  for (const i64 length : {i64{1}, i64{37}, i64{4096}, kLpnMain.secret}) {
    const LpnCode portable({1, 2}, length, crypto::AesBackend::portable),
        wide({1, 2}, length, GetParam());
    const auto secret = random_blocks({3, 1}, length);
    for (const i64 count : {0, 64, 320}) {
      const auto before = random_blocks({4, 1}, count);
      auto expected = before, rows = before;
      portable.add(5, 128, secret.data(), expected.data(), count);
      wide.add(5, 128, secret.data(), rows.data(), count);
      ASSERT_EQ(rows, expected);
      for (u64 hole : {u64{0}, u64{63}, u64{64}, u64{319}, ~u64{0}}) {
        expected = rows = before;
        portable.encode(6, 64, secret.data(), hole, expected.data(), count);
        wide.encode(6, 64, secret.data(), hole, rows.data(), count);
        ASSERT_EQ(rows, expected) << hole;
        // By definition: the noise, then the code.
        auto defined = before;
        for (i64 i = 0; i < count; ++i)
          defined[i].lo = (defined[i].lo & ~u64{1}) | (static_cast<u64>(i) == hole);
        portable.add(6, 64, secret.data(), defined.data(), count);
        ASSERT_EQ(rows, defined);
      }
    }
  }
}

struct Folded {
  std::vector<crypto::Block> total, planes;
  friend bool operator==(const Folded&, const Folded&) = default;
};

TEST_P(OtKernels, ExpandTheSameRows) {
  for (int digit = 0; digit <= kFoldMaxDigit; ++digit) {
    for (const i64 blocks : {4, 8, 12, 20, 64, 68}) {
      for (const bool add : {false, true}) {
        const i64 stride = blocks + 3;
        const auto expand = [&](crypto::AesBackend backend) {
          std::vector<crypto::Aes128> seeds;
          for (u64 x = 0; x < u64{1} << digit; ++x)
            seeds.emplace_back(crypto::Block{x, 9}, backend);
          std::vector<crypto::Block> scratch(blocks << digit);
          Folded sums{std::vector<crypto::Block>(blocks),
                      random_blocks({1, 2}, stride * (digit + 1))};
          vole_expand(seeds.data(), digit, 1000, blocks, scratch.data(), sums.total.data(),
                      {sums.planes.data(), stride, add});
          return sums;
        };
        ASSERT_EQ(expand(GetParam()), expand(crypto::AesBackend::portable))
            << digit << " " << blocks;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, OtKernels,
                         testing::Values(crypto::AesBackend::neon, crypto::AesBackend::aesni,
                                         crypto::AesBackend::avx2, crypto::AesBackend::vaes256,
                                         crypto::AesBackend::vaes512));

}  // namespace
}  // namespace privml::ot
