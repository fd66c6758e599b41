// SPDX-License-Identifier: Apache-2.0
// Malicious security of SoftSpoken OT: whatever bit of whatever message is flipped, the other side
// aborts; and a receiver that deviates passes exactly if it has guessed the offset.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/testing/sanitized.h"
#include "crypto/prg.h"
#include "ot/ggm.h"
#include "ot/softspoken.h"
#include "ot/softspoken_check.h"
#include "ot/testing/tampered.h"

namespace privml::ot::testing {
namespace {

using Blocks = std::vector<crypto::Block>;

Blocks random_blocks(i64 count, u64 seed) {
  Blocks blocks(count);
  crypto::Prg({seed, 77}).fill_blocks(blocks.data(), count);
  return blocks;
}

// Bits worth flipping in a message: `dense` bits at its end, and one bit in every `step` bytes.
std::vector<i64> positions(i64 bytes, i64 step, i64 dense) {
  std::vector<i64> bits;
  for (i64 at = 0; at < bytes; at += step) bits.push_back(8 * at + at / step % 8);
  for (i64 bit = std::max<i64>(0, 8 * bytes - dense); bit < 8 * bytes; ++bit) bits.push_back(bit);
  return bits;
}

// Roots with which a dishonest receiver makes all streams agree in the first two correlations.
Blocks roots_of_equal_rows(int k, bool malicious) {
  crypto::Prg prg({3, 4});
  Blocks roots;
  for (const OffsetElement& element : offset_elements(k)) {
    for (bool equal = false; !equal;) {
      const crypto::Block root = prg.next_block();
      GgmTree tree = ggm_expand(root, element.bits);
      if (malicious) ggm_prove(tree.leaves);
      equal = std::all_of(tree.leaves.begin(), tree.leaves.end(), [&](const crypto::Block& leaf) {
        crypto::Block columns;  // of correlations 0 .. 127
        const u64 hiding = malicious ? kSoftSpokenHidingColumns / 128 : 0;
        crypto::Aes128(leaf).encrypt_counter({hiding, 0}, &columns, 1);
        return ((columns.lo ^ columns.lo >> 1) & 1) == 0;
      });
      if (equal) roots.push_back(root);
    }
  }
  return roots;
}

// A sender and a receiver with base OTs from a dealer, one after the other on one thread.
struct Pair {
  explicit Pair(int k, std::optional<net::testing::Flip> flip = {}, bool malicious = true,
                const Blocks& roots = {}) {
    auto [first, second] = net::make_memory_channels();
    sender_channel = std::move(first);
    auto tampering = std::make_unique<net::testing::TamperingChannel>(std::move(second), flip);
    tampered = tampering.get();
    receiver_channel = std::move(tampering);
    delta = random_blocks(1, 1)[0];
    delta.lo |= 1;
    const Blocks keys = random_blocks(256, 2);
    const WipedVector<u8> choices = softspoken_base_choices(delta, k);
    std::vector<std::array<crypto::Block, 2>> pairs(128);
    Blocks chosen(128);
    for (int i = 0; i < 128; ++i) {
      pairs[i] = {keys[2 * i], keys[2 * i + 1]};
      chosen[i] = pairs[i][choices[i]];
    }
    const SoftSpokenSecurity security{malicious, {1, 2, 3}};
    receiver = roots.empty()
                   ? make_softspoken_receiver(*receiver_channel, k, {5, 6}, pairs, security)
                   : make_softspoken_receiver(*receiver_channel, k, roots, pairs, security);
    receiver_channel->flush();
    sender = make_softspoken_sender(*sender_channel, k, delta, chosen, security);
  }

  void extend(i64 count) {
    t.resize(count);
    q.assign(count, {1, 1});
    receiver->step(0, t.data(), count);
    receiver_channel->flush();
    sender->step(1, q.data(), count);
  }

  bool correlated() const {
    for (size_t i = 0; i < q.size(); ++i)
      if (!((q[i] ^ crypto::select(crypto::low_bit(t[i]), delta)) == t[i]) ||
          crypto::low_bit(q[i]) != 0)
        return false;
    return true;
  }

  std::unique_ptr<net::Channel> sender_channel, receiver_channel;
  net::testing::TamperingChannel* tampered = nullptr;
  std::unique_ptr<Rcot> sender, receiver;
  crypto::Block delta;
  Blocks q, t;
};

class SoftSpokenTampering : public ::testing::TestWithParam<int> {};

// The receiver reads nothing, so all it writes is one message: seeds, proofs, then the extension.
TEST_P(SoftSpokenTampering, EveryFlipOfSeedsAndExtensionEndsInAnAbort) {
  const int k = GetParam();
  constexpr i64 kCount = 512;
  Pair honest(k);
  const i64 seeds = honest.tampered->message_bytes()[0];
  EXPECT_EQ(seeds, softspoken_seed_bytes(k, true));
  honest.extend(kCount);
  EXPECT_TRUE(honest.correlated());
  const i64 all = honest.tampered->message_bytes()[0];
  // Every bit of the last tree's proof and of the extension's; fewer where trees are large.
  const i64 sparse = (k <= 4 ? 1 : 12) * (privml::testing::kSanitized ? 2 : 1);
  std::vector<i64> bits = positions(seeds, 41 * sparse, 8 * 64 / sparse);
  for (i64 bit : positions(all - seeds, 23 * sparse, 8 * kSoftSpokenProofBytes / sparse)) {
    bits.push_back(8 * seeds + bit);
  }
  for (i64 bit : bits) {
    bool in_seeds = true;
    try {
      Pair pair(k, net::testing::Flip{0, bit});
      in_seeds = false;
      EXPECT_THROW(pair.extend(kCount), SecurityAbort) << bit;
      EXPECT_TRUE(pair.tampered->flipped());
      // Nothing is left of the extension, and there is no second attempt at this offset.
      EXPECT_TRUE(std::all_of(pair.q.begin(), pair.q.end(),
                              [](crypto::Block b) { return b == crypto::kZeroBlock; }));
      EXPECT_THROW(pair.sender->step(1, pair.q.data(), kCount), SecurityAbort);
      EXPECT_THROW(pair.sender_channel->read({reinterpret_cast<u8*>(&pair.q[0]), 1}),
                   PeerDisconnected);
    } catch (const SecurityAbort&) {
      EXPECT_TRUE(in_seeds && bit < 8 * seeds) << bit;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Degrees, SoftSpokenTampering, ::testing::Values(1, 2, 3, 4, 7, 10),
                         [](const auto& info) { return "k" + std::to_string(info.param); });

TEST(SoftSpokenExtensions, SlicesAndLaterExtensionsAreChecked) {
  // Several slices. Flips in the first, in the last, in the second extension.
  constexpr i64 kCount = 2 * SoftSpokenRows::kSlice + 256;
  constexpr int k = 4;
  Pair honest(k);
  const i64 seeds = honest.tampered->message_bytes()[0];
  honest.extend(kCount);
  const i64 one = honest.tampered->message_bytes()[0];
  honest.extend(kCount);
  EXPECT_TRUE(honest.correlated());
  const i64 extension = one - seeds;
  EXPECT_EQ(extension, softspoken_cost(k, true).message_bytes(0, kCount));
  for (i64 byte : {i64{0}, i64{20}, extension / 2, extension - 49, extension - 1}) {
    Pair first(k, net::testing::Flip{0, 8 * (seeds + byte) + 3});
    EXPECT_THROW(first.extend(kCount), SecurityAbort);
    Pair second(k, net::testing::Flip{0, 8 * (one + byte) + 3});
    second.extend(kCount);
    EXPECT_TRUE(second.correlated());
    EXPECT_THROW(second.extend(kCount), SecurityAbort);
  }
}

TEST(SoftSpokenContext, SessionsAndDirectionsDoNotMix) {
  auto [first, second] = net::make_memory_channels();
  const Blocks keys = random_blocks(128, 3);
  std::vector<std::array<crypto::Block, 2>> pairs(128);
  for (int i = 0; i < 128; ++i) pairs[i] = {keys[i], keys[i]};
  const auto receiver = make_softspoken_receiver(*second, 4, {5, 6}, pairs, {true, {1}});
  second->flush();
  const auto sender = make_softspoken_sender(*first, 4, {9, 9}, keys, {true, {2}});
  Blocks out(256);
  receiver->step(0, out.data(), 256);
  second->flush();
  EXPECT_THROW(sender->step(1, out.data(), 256), SecurityAbort);
}

// Whole sessions: coin toss, base OTs, seeds, extension.
void expect_detected(const OtConfig& config, int tampered, const std::vector<i64>& steps) {
  const auto body = [](Party& party) { reserve(party, 300, 300); };
  const TamperedRun honest = run_tampered(config, tampered, {}, body);
  EXPECT_EQ(honest.ending, (std::array{Ending::completed, Ending::completed}));
  ASSERT_EQ(honest.message_bytes.size(), steps.size());
  for (i64 message = 0; message < std::ssize(steps); ++message) {
    const i64 bytes = honest.message_bytes[message], step = steps[message];
    for (i64 bit : positions(bytes, step, step == 1 ? 8 * bytes : 2)) {
      const TamperedRun run =
          run_tampered(config, tampered, net::testing::Flip{message, bit}, body);
      EXPECT_TRUE(run.flipped) << message << " " << bit;
      EXPECT_TRUE(run.detected()) << message << " " << bit;
      // The side that received the flip finishes nothing.
      EXPECT_NE(run.ending[1 - tampered], Ending::completed) << message << " " << bit;
    }
  }
}

TEST(SoftSpokenSessionTampering, EveryMessageOfASession) {
  // Commitment and opening bit by bit; the base OTs' replies, the last with seeds, an extension and
  // the differences of choices, and extensions at some places.
  std::vector<i64> steps(19, 300);
  steps[0] = steps[1] = privml::testing::kSanitized ? 3 : 1;
  steps[17] = 1300;
  expect_detected(test_config("softspoken", 4, "malicious"), 0, steps);
  // Commitment; opening with the base OTs' request; seeds with an extension.
  expect_detected(test_config("softspoken", 2, "malicious"), 1, {7, 1100, 790});
}

TEST(SoftSpokenCheck, AWrongElementPassesOnlyIfItsPartOfTheOffsetWasGuessed) {
  constexpr i64 kBlocks = 6;
  const Blocks v = random_blocks(128 * kBlocks, 10), u = random_blocks(kBlocks, 11);
  const Blocks error = random_blocks(kBlocks, 12), message = random_blocks(40, 13);
  const crypto::Block delta = random_blocks(1, 14)[0];
  const std::array<u8, 32> context{};
  const auto bit_of = [&](int r) -> u8 {
    return (r < 64 ? delta.lo >> r : delta.hi >> (r - 64)) & 1;
  };
  const Bytes sent{reinterpret_cast<const u8*>(message.data()),
                   message.size() * sizeof(crypto::Block)};
  // Element 3 of degree 4, rows 12 to 15, used u ^ error.
  Blocks w = v;
  for (int r = 0; r < 128; ++r) {
    for (i64 j = 0; j < kBlocks; ++j) {
      const crypto::Block a = r / 4 == 3 ? u[j] ^ error[j] : u[j];
      w[r * kBlocks + j] ^= crypto::select(bit_of(r), a);
    }
  }
  const auto check_of = [&](const Blocks& rows) {
    SoftSpokenCheck check(context, sent);
    check.begin();
    check.absorb(sent, kBlocks);
    check.add_rows(rows.data(), kBlocks);
    check.add_choices(u.data());
    return check;
  };
  int passed = 0;
  for (int guess = 0; guess < 16; ++guess) {
    Blocks claimed = v;
    for (int b = 0; b < 4; ++b) {
      for (i64 j = 0; j < kBlocks; ++j)
        claimed[(12 + b) * kBlocks + j] ^= crypto::select(guess >> b & 1, error[j]);
    }
    const SoftSpokenProof proof = check_of(claimed).prove();
    const bool accepted = check_of(w).verify(proof, delta);
    EXPECT_EQ(accepted, guess == static_cast<int>(delta.lo >> 12 & 15)) << guess;
    passed += accepted;
  }
  EXPECT_EQ(passed, 1);
}

TEST(GgmProof, HoldsForHonestTreesAndFixesTheLeaves) {
  for (int depth : {1, 2, 5}) {
    for (u64 hole = 0; hole < u64{1} << depth; ++hole) {
      GgmTree tree = ggm_expand({hole, 3}, depth);
      Blocks sums(depth);
      for (int level = 0; level < depth; ++level)
        sums[level] = tree.sums[level][~(hole >> (depth - 1 - level)) & 1];
      WipedVector<crypto::Block> punctured = ggm_puncture(sums, hole);
      const GgmProof proof = ggm_prove(tree.leaves);
      ASSERT_TRUE(ggm_verify(punctured, hole, proof));
      EXPECT_EQ(punctured[0], crypto::kZeroBlock);
      for (u64 y = 1; y < punctured.size(); ++y) ASSERT_EQ(punctured[y], tree.leaves[y ^ hole]);
      // A sum that is off at any level is noticed.
      for (crypto::Block& sum : sums) {
        sum.hi ^= 16;
        WipedVector<crypto::Block> wrong = ggm_puncture(sums, hole);
        EXPECT_FALSE(ggm_verify(wrong, hole, proof));
        sum.hi ^= 16;
      }
      for (int part : {0, 1}) {
        GgmProof changed = proof;
        changed.tag_sum[part].lo ^= 1;
        WipedVector<crypto::Block> again = ggm_puncture(sums, hole);
        EXPECT_FALSE(ggm_verify(again, hole, changed));
      }
    }
  }
}

// Two correlations with the same q have the same pads: what a sender hides with them could be
// subtracted.
TEST(SoftSpokenSeeds, AReceiverThatChoosesItsSeedsGetsNoEqualRows) {
  for (bool malicious : {false, true}) {
    Pair pair(2, {}, malicious, roots_of_equal_rows(2, malicious));
    pair.extend(256);
    EXPECT_TRUE(pair.correlated());
    EXPECT_EQ(pair.q[0] == pair.q[1], !malicious) << "malicious security: " << malicious;
  }
}

}  // namespace
}  // namespace privml::ot::testing
