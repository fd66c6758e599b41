// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/edabits.h"

#include <gtest/gtest.h>

#include "spdz2k/preprocessing/carry_proof.h"
#include "spdz2k/preprocessing/private_numbers.h"
#include "spdz2k/testing/generation.h"

namespace privml::spdz2k::testing {
namespace {

template <class R>
class Spdz2kEdabits : public ::testing::Test {};
using Rings = ::testing::Types<Ring8, Ring32, Ring64>;
TYPED_TEST_SUITE(Spdz2kEdabits, Rings);

// Every pair of numbers of k bits against every claimed sum: the proof holds for the right one
// only.
TEST(Spdz2kCarryProof, HoldsForRightSumsOnly) {
  const crypto::Block delta{0x0123456789abcdef | 1, 0xfedcba9876543210};
  crypto::Prg prg({1, 2});
  std::array<crypto::Block, kProofMasks> mask_t, mask_q;
  for (int i = 0; i < kProofMasks; ++i) {
    mask_t[i] = prg.next_block();
    mask_q[i] = mask_t[i] ^ crypto::select(crypto::low_bit(mask_t[i]), delta);
  }
  constexpr int k = 3;
  for (u64 x = 0; x < 1 << k; ++x) {
    for (u64 y = 0; y < 1 << k; ++y) {
      crypto::Block t[2 * k], q[2 * k];
      for (int b = 0; b < 2 * k; ++b) {
        const u8 bit = static_cast<u8>((b < k ? x >> b : y >> (b - k)) & 1);
        q[b] = prg.next_block();
        q[b].lo &= ~u64{1};
        t[b] = q[b] ^ crypto::select(bit, delta);
      }
      for (u64 sum = 0; sum < 1 << k; ++sum) {
        // x has as many bits as it needs, in steps of 1; y's are complete.
        const int bits = x < 2 ? 1 : x < 4 ? 2 : k;
        CarryProver prover({3, 4}, k);
        CarryVerifier verifier({3, 4}, k, delta);
        prover.add({t, 1, bits}, {t + k, 1, k}, sum);
        verifier.add({q, 1, bits}, {q + k, 1, k}, sum);
        auto proof = prover.finish(mask_t.data());
        EXPECT_EQ(verifier.verify(mask_q.data(), proof), sum == (x + y) % (1 << k));
        proof[1].hi ^= 1;
        EXPECT_FALSE(verifier.verify(mask_q.data(), proof));
      }
    }
  }
}

TYPED_TEST(Spdz2kEdabits, PrivateNumbersAndTheirBits) {
  using R = TypeParam;
  for (const int width : {1, R::k / 2, R::k}) {
    const i64 n = 20;
    Both<PrivateNumbers<R>> numbers;
    const auto record =
        run_generation<R>(malicious_ot(), [&](Session<R>& session, ot::Party& party) {
          numbers[session.rank] = generate_private_numbers(session, party, width, n);
        });
    for (int owner : {0, 1}) {
      const Words r = reconstruct<R, typename R::Word>(
          {numbers[0].words[owner], numbers[1].words[owner]}, R::k);
      const Words bits =
          reconstruct<R, typename R::BitWord>({numbers[0].bits[owner], numbers[1].bits[owner]}, 1);
      for (i64 i = 0; i < n; ++i) {
        u64 sum = 0;
        for (int b = 0; b < width; ++b) sum |= bits[b * n + i] << b;
        ASSERT_EQ(r[i], sum);
      }
    }
    CostMeter meter(ot::rcot_cost(malicious_ot()));
    cost_generate_private_numbers<R>(meter, width, n);
    expect_generation_cost(record, meter);
  }
}

TYPED_TEST(Spdz2kEdabits, NumbersAndTheirBitsBothWays) {
  using R = TypeParam;
  for (const EdabitMethod method : {EdabitMethod::composed, EdabitMethod::summed}) {
    for (const int width : {1, 2, R::k / 2, R::k - 1, R::k}) {
      const i64 n = 50;
      Both<WordShares<R>> r{WordShares<R>(n), WordShares<R>(n)};
      Both<BitShares<R>> bits{BitShares<R>(width * n), BitShares<R>(width * n)};
      const auto record = run_generation<R>(ideal_ot(), [&](Session<R>& session, ot::Party& party) {
        generate_edabits<R>(session, party, method, width, r[session.rank], bits[session.rank]);
        EXPECT_EQ(session.openings.pending(), 0);
      });
      const Words numbers = reconstruct<R>(r, R::k), planes = reconstruct<R>(bits, 1);
      u64 seen = 0, missing = 0;
      for (i64 i = 0; i < n; ++i) {
        u64 sum = 0;
        for (int b = 0; b < width; ++b) sum |= planes[b * n + i] << b;
        ASSERT_EQ(numbers[i], sum);
        seen |= sum;
        missing |= ~sum;
      }
      // Each bit is both 0 and 1 somewhere: fails with probability 64 * 2^-49, for fixed seeds.
      EXPECT_EQ(seen, low_mask(width));
      EXPECT_EQ(missing & low_mask(width), low_mask(width));
      CostMeter meter(ot::rcot_cost(ideal_ot()));
      cost_generate_edabits<R>(meter, method, width, n);
      expect_generation_cost(record, meter);
    }
  }
}

TYPED_TEST(Spdz2kEdabits, RefusesWrongArguments) {
  using R = TypeParam;
  WordShares<R> r(100);
  BitShares<R> bits(100);
  run_generation<R>(ideal_ot(), [&](Session<R>& session, ot::Party& party) {
    for (const int width : {0, R::k + 1, 2}) {
      EXPECT_THROW(generate_edabits<R>(session, party, EdabitMethod::summed, width, r, bits),
                   InvalidArgument);
    }
    EXPECT_THROW(generate_private_numbers(session, party, 1, kMostNumbers + 1), InvalidArgument);
  });
}

// One flipped bit in each message of each party. The honest party aborts, or the flip hit a word
// that a choice bit of 0 makes irrelevant and numbers and bits agree.
template <class R>
void expect_flips_are_harmless(int width) {
  constexpr i64 n = 8;
  Both<WordShares<R>> r{WordShares<R>(n), WordShares<R>(n)};
  Both<BitShares<R>> bits{BitShares<R>(width * n), BitShares<R>(width * n)};
  const GenerationBody<R> body = [&](Session<R>& session, ot::Party& party) {
    generate_edabits<R>(session, party, EdabitMethod::summed, width, r[session.rank],
                        bits[session.rank]);
    session.toss();  // opens the last coin's commitment
  };
  const auto expect_right = [&] {
    const Words numbers = reconstruct<R>(r, R::k), planes = reconstruct<R>(bits, 1);
    for (i64 i = 0; i < n; ++i) {
      u64 sum = 0;
      for (int b = 0; b < width; ++b) sum |= planes[b * n + i] << b;
      ASSERT_EQ(numbers[i], sum);
    }
  };
  for (const int dishonest : {0, 1}) {
    const auto [runs, aborts] = flip_every_message<R>(dishonest, {5, 3}, body, expect_right);
    EXPECT_GT(aborts, runs * 9 / 10);
  }
}

TEST(Spdz2kEdabitTampering, Ring32) { expect_flips_are_harmless<Ring32>(9); }
TEST(Spdz2kEdabitTampering, Ring64) { expect_flips_are_harmless<Ring64>(64); }

}  // namespace
}  // namespace privml::spdz2k::testing
