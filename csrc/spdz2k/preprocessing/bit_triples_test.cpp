// SPDX-License-Identifier: Apache-2.0
#include "spdz2k/preprocessing/bit_triples.h"

#include <gtest/gtest.h>

#include "spdz2k/preprocessing/authenticated_bits.h"
#include "spdz2k/preprocessing/bit_check.h"
#include "spdz2k/preprocessing/bucketing.h"
#include "spdz2k/testing/generation.h"

namespace privml::spdz2k::testing {
namespace {

template <class R>
class Spdz2kBitTriples : public ::testing::Test {};
using Rings = ::testing::Types<Ring8, Ring32, Ring64>;
TYPED_TEST_SUITE(Spdz2kBitTriples, Rings);

// Fair coins: off the mean by more than six standard deviations with probability 2e-9.
void expect_fair(const Words& bits) {
  i64 ones = 0;
  for (const u64 bit : bits) ones += static_cast<i64>(bit);
  const double n = static_cast<double>(bits.size());
  EXPECT_LT(std::abs(static_cast<double>(ones) - n / 2), 3 * std::sqrt(n));
}

TYPED_TEST(Spdz2kBitTriples, AuthenticatedBitsOfBothParties) {
  using R = TypeParam;
  constexpr i64 kCount = 5000;
  Both<BitShares<R>> both{BitShares<R>(kCount), BitShares<R>(kCount)}, of0 = both, of1 = both;
  Both<AuthenticatedBits<R>> bits;
  Both<crypto::Block> delta;
  const auto record = run_generation<R>(malicious_ot(), [&](Session<R>& session, ot::Party& party) {
    const int rank = session.rank;
    bits[rank] = authenticate_random_bits(session, party, kCount, Correlations::kept);
    delta[rank] = party.sender.delta();
    shares_of_both<R>(session, bits[rank], both[rank]);
    shares_of_owner<R>(session, bits[rank], 0, 0, of0[rank]);
    shares_of_owner<R>(session, bits[rank], 1, 0, of1[rank]);
  });
  const Words x = reconstruct<R>(both, 1), x0 = reconstruct<R>(of0, 1), x1 = reconstruct<R>(of1, 1);
  expect_fair(x0);
  expect_fair(x1);
  expect_fair(x);
  for (i64 i = 0; i < kCount; ++i) {
    ASSERT_EQ(x[i], x0[i] ^ x1[i]);
    ASSERT_EQ(x0[i], bits[0].value[i] & 1);
    ASSERT_EQ(x1[i], bits[1].value[i] & 1);
    for (int rank : {0, 1}) {
      const crypto::Block offset = crypto::select(bits[rank].value[i] & 1, delta[1 - rank]);
      ASSERT_EQ(bits[rank].own[i], bits[1 - rank].peer[i] ^ offset);
    }
  }
  CostMeter meter(ot::rcot_cost(malicious_ot()));
  cost_authenticate_random_bits<R>(meter, kCount);
  expect_generation_cost(record, meter);
}

TYPED_TEST(Spdz2kBitTriples, AreProducts) {
  using R = TypeParam;
  for (const i64 n : {kFewestBuckets, i64{3000}}) {
    Both<BitShares<R>> x{BitShares<R>(n), BitShares<R>(n)}, y = x, z = x;
    const auto record = run_generation<R>(malicious_ot(), [&](Session<R>& session,
                                                              ot::Party& party) {
      generate_bit_triples<R>(session, party, x[session.rank], y[session.rank], z[session.rank]);
      EXPECT_EQ(session.openings.pending(), 0);
    });
    const Words a = reconstruct<R>(x, 1), b = reconstruct<R>(y, 1), c = reconstruct<R>(z, 1);
    expect_fair(a);
    expect_fair(b);
    for (i64 i = 0; i < n; ++i) ASSERT_EQ(c[i], a[i] & b[i]);
    CostMeter meter(ot::rcot_cost(malicious_ot()));
    cost_generate_bit_triples<R>(meter, n);
    expect_generation_cost(record, meter);
  }
}

TYPED_TEST(Spdz2kBitTriples, RefusesBatchesThatAreTooSmall) {
  using R = TypeParam;
  BitShares<R> few(kFewestBuckets - 1), fewer(3);
  run_generation<R>(ideal_ot(), [&](Session<R>& session, ot::Party& party) {
    EXPECT_THROW(generate_bit_triples<R>(session, party, few, few, few), InvalidArgument);
    EXPECT_THROW(generate_bit_triples<R>(session, party, few, few, fewer), InvalidArgument);
  });
}

// MACs that are wrong in one place, in the top bit only, or under another key.
TYPED_TEST(Spdz2kBitTriples, TheCheckFindsEveryKindOfError) {
  using R = TypeParam;
  using BitWord = typename R::BitWord;
  if (R::s == 8) return;  // 2^-8 is no security
  constexpr i64 kCount = 3000;
  const Words x = random_words(kCount, 1);
  const auto shares = share_bits<R>(x);
  // Whether both parties ended in SecurityAbort; party 1 changes its shares.
  const auto aborts = [&](const std::function<void(BitShares<R>&)>& change) {
    Both<bool> aborted{};
    run_generation<R>(ideal_ot(), [&](Session<R>& session, ot::Party&) {
      const BitShares<R>& given = shares[session.rank];
      BitShares<R> mine(kCount);
      std::copy(given.value.begin(), given.value.end(), mine.value.begin());
      std::copy(given.mac.begin(), given.mac.end(), mine.mac.begin());
      if (session.rank == 1) change(mine);
      try {
        check_bit_macs<R>(session, {mine.part(0, 1000), mine.part(1000, kCount - 1000)}, "test");
      } catch (const SecurityAbort&) {
        aborted[session.rank] = true;
      }
    });
    EXPECT_EQ(aborted[0], aborted[1]);
    return aborted[0];
  };
  EXPECT_FALSE(aborts([](BitShares<R>&) {}));
  const BitWord top = static_cast<BitWord>(BitWord{1} << (R::s - 1));
  for (const i64 at : {i64{0}, i64{999}, i64{1000}, kCount - 1}) {
    EXPECT_TRUE(aborts([&](BitShares<R>& mine) { mine.mac[at] += top; }));
    EXPECT_TRUE(aborts([&](BitShares<R>& mine) { mine.mac[at] ^= 1; }));
    EXPECT_TRUE(aborts([&](BitShares<R>& mine) { mine.value[at] ^= 1; }));
  }
  // Another key, different in its top bit: the MACs of all words that are odd.
  EXPECT_TRUE(aborts([&](BitShares<R>& mine) {
    for (i64 i = 0; i < kCount; ++i) mine.mac[i] += static_cast<BitWord>(top * x[i]);
  }));
}

// One flipped bit in each message of each party: the honest party aborts, or the flip fell on a
// word that a choice bit of 0 makes irrelevant, and then the triples are right.
template <class R>
void expect_flips_are_harmless() {
  constexpr i64 n = kFewestBuckets;
  Both<BitShares<R>> x{BitShares<R>(n), BitShares<R>(n)}, y = x, z = x;
  const GenerationBody<R> body = [&](Session<R>& session, ot::Party& party) {
    generate_bit_triples<R>(session, party, x[session.rank], y[session.rank], z[session.rank]);
  };
  const auto expect_right = [&] {
    const Words a = reconstruct<R>(x, 1), b = reconstruct<R>(y, 1), c = reconstruct<R>(z, 1);
    for (i64 i = 0; i < n; ++i) ASSERT_EQ(c[i], a[i] & b[i]);
  };
  for (const int dishonest : {0, 1}) {
    const auto [runs, aborts] = flip_every_message<R>(dishonest, {7, 5, 3}, body, expect_right);
    EXPECT_GT(aborts, runs * 3 / 4);
    EXPECT_LT(aborts, runs);  // some choice bits are 0
  }
}

TEST(Spdz2kBitTripleTampering, Ring32) { expect_flips_are_harmless<Ring32>(); }
TEST(Spdz2kBitTripleTampering, Ring64) { expect_flips_are_harmless<Ring64>(); }

}  // namespace
}  // namespace privml::spdz2k::testing
