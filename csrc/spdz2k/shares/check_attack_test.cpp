// SPDX-License-Identifier: Apache-2.0
// A party opens wrong values and then corrects its messages of the check as well as it can. The
// published check, one combination with coefficients mod 2^s, accepts this half of the time.
#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "spdz2k/shares/check.h"
#include "spdz2k/shares/group_check.h"
#include "spdz2k/shares/open.h"
#include "spdz2k/testing/parties.h"

namespace privml::spdz2k::testing {
namespace {

constexpr int kCheater = 1;

template <class T>
MutableBytes bytes_of(std::vector<T>& words) {
  return {reinterpret_cast<u8*>(words.data()), words.size() * sizeof(T)};
}

// The check with a cheating party whose first two openings were wrong by `error` each, in halves of
// 2^bits: it knows the subsets before it sends its sums, and subtracts from every sum the errors'
// contribution in multiples of 2^bits.
template <class R, class W>
void cheating_check(Session<R>& session, ShareView<W> slots, int group, std::array<i64, 2> error) {
  using BitWord = typename R::BitWord;
  const i64 n = slots.size();
  const crypto::Block seed = seed_of(n > R::s ? session.toss() : crypto::kZeroBlock, group);
  const GroupCheck<R, W> own(session, slots, group == kBitGroup ? 1 : group, seed);
  std::vector<BitWord> subsets(n);
  if (n > R::s) {
    crypto::Prg(seed).fill_bytes(bytes_of(subsets));
  } else {
    for (i64 i = 0; i < n; ++i) subsets[i] = static_cast<BitWord>(BitWord{1} << i);
  }
  std::vector<BitWord> sums = own.masked(), theirs(sums.size()), taken_off(sums.size());
  for (std::size_t l = 0; l < sums.size(); ++l) {
    i64 halves = 0;
    for (int i : {0, 1}) halves += (subsets[i] >> l & 1) != 0 ? error[i] : 0;
    taken_off[l] = static_cast<BitWord>(halves / 2);  // an odd count cannot be corrected
    sums[l] = static_cast<BitWord>(sums[l] - taken_off[l]);
  }
  session.channel.write(bytes_of(sums));
  session.channel.read(bytes_of(theirs));
  for (std::size_t l = 0; l < sums.size(); ++l) {
    theirs[l] = static_cast<BitWord>(theirs[l] - taken_off[l]);
  }
  const W result = own.result(theirs.data(), seed_of(session.toss(), 0));
  std::vector<u8> message(sizeof(W) + sizeof(crypto::Block));
  std::memcpy(message.data(), &result, sizeof result);
  const Commitment commitment = commit(kCheckLabel, session.rank, session.checks, message);
  Commitment other;
  session.channel.write(commitment);
  session.channel.read(other);
  session.channel.write(message);
  session.channel.read(message);
}

// How often, of `runs` times, the honest party accepted n openings of which the cheater changed the
// highest bit of two.
template <class R, bool of_bits>
i64 accepted(i64 n, i64 runs) {
  using W = std::conditional_t<of_bits, typename R::BitWord, typename R::Word>;
  const int bits = of_bits ? 1 : R::k;
  i64 count = 0;
  run_parties<R>([&](Session<R>& session) {
    const int rank = session.rank;
    crypto::Prg keys({static_cast<u64>(rank), 5});
    for (i64 run = 0; run < runs; ++run) {
      auto shares = share<R, W>(Words(n, 1), run);
      Session<R> inner(rank, session.channel, keys, ideal_key<R>(kSeed, rank));
      inner.set_supply(session.supply());
      std::array<i64, 2> error{};
      for (int i : {0, 1}) {
        W& word = shares[kCheater].value[i];
        error[i] = (word >> (bits - 1) & 1) != 0 ? -1 : 1;
        word ^= static_cast<W>(W{1} << (bits - 1));
      }
      if constexpr (of_bits) {
        Bits out(n);
        open_bits<R>(inner, shares[rank], out);
      } else {
        Words out(n);
        open<R>(inner, shares[rank], bits, out);
      }
      if (rank != kCheater) {
        try {
          check(inner);
          ++count;
        } catch (const SecurityAbort&) {
        }
      } else if constexpr (of_bits) {
        cheating_check<R, W>(inner, inner.openings.bits(), kBitGroup, error);
      } else {
        cheating_check<R, W>(inner, inner.openings.words().at(bits), bits, error);
      }
    }
  });
  return count;
}

TEST(Spdz2kCheckAttack, MendedSumsPassWithTheProvenProbabilityOnly) {
  // 2^-8 that every subset holds both or none of the errors, and the guesses of 8 or 7 key bits.
  constexpr i64 kRuns = 2000;
  EXPECT_LT((accepted<Ring8, false>(20, kRuns)), kRuns / 10);
  EXPECT_LT((accepted<Ring8, true>(20, kRuns)), kRuns / 10);
  EXPECT_LT((accepted<Ring8, false>(5, kRuns)), kRuns / 10);
  // The attack works: with a weak ring it sometimes succeeds.
  EXPECT_GT((accepted<Ring8, false>(20, kRuns)), 0);
}

TEST(Spdz2kCheckAttack, MendedSumsNeverPassInRealRings) {
  for (const i64 n : {2, 64, 65, 300}) {
    EXPECT_EQ((accepted<Ring32, false>(n, 40)), 0);
    EXPECT_EQ((accepted<Ring32, true>(n, 40)), 0);
    EXPECT_EQ((accepted<Ring64, false>(n, 40)), 0);
    EXPECT_EQ((accepted<Ring64, true>(n, 40)), 0);
  }
}

// Subset sums of every word size against the plain ones.
template <class B>
void expect_subset_sums() {
  const i64 n = 37;
  constexpr int kSums = 8 * sizeof(B);
  std::vector<B> words(n), subsets(n), sums(kSums, 3), expected(kSums, 3), weights(kSums);
  crypto::Prg prg({1, 2});
  for (auto* values : {&words, &subsets, &weights}) prg.fill_bytes(bytes_of(*values));
  for (i64 i = 0; i < n; ++i) {
    for (int l = 0; l < kSums; ++l) {
      if (subsets[i] >> l & 1) expected[l] = static_cast<B>(expected[l] + words[i]);
    }
  }
  add_subset_sums(words.data(), subsets.data(), n, sums.data());
  EXPECT_EQ(sums, expected);
  for (B& weight : weights) weight = static_cast<B>(weight >> 3);
  const SubsetWeights<B> weight(weights.data());
  for (const B subset : subsets) {
    u128 sum = 0;
    for (int l = 0; l < kSums; ++l) sum += (subset >> l & 1) != 0 ? weights[l] : 0;
    EXPECT_TRUE(weight.template of<u128>(subset) == sum);
  }
}

TEST(Combination, SubsetSumsAndWeights) {
  expect_subset_sums<u8>();
  expect_subset_sums<u32>();
  expect_subset_sums<u64>();
}

}  // namespace
}  // namespace privml::spdz2k::testing
