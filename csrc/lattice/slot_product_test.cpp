// SPDX-License-Identifier: Apache-2.0
#include "lattice/slot_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/error.h"

namespace privml::lattice {
namespace {

std::vector<u64> numbers(i64 count, u64 prime, u64 seed) {
  std::mt19937_64 random(seed);
  std::vector<u64> out(count);
  for (u64& x : out) x = random() % prime;
  return out;
}

struct Session {
  explicit Session(const WideChoice& choice)
      : choice(choice), key(choice, digest, client), evaluator(choice, digest, sent(), owner) {}
  std::vector<u8> sent() {
    std::vector<u8> wire(slot_key_bytes(choice));
    key.write_key(wire);
    return wire;
  }
  // Both parties' shares modulo 1.
  std::array<TorusVector, 2> shares(i64 number, const std::vector<u64>& x,
                                    const std::vector<u64>& y) {
    std::vector<u8> upload(slot_upload_bytes(choice)), answer(slot_answer_bytes(choice));
    key.write_upload(number, x, upload);
    TorusVector mine = evaluator.answer(number, upload, y, answer);
    return {key.read_answer(answer), std::move(mine)};
  }

  WideChoice choice;
  Digest digest{7};
  crypto::Prg client{{1, 1}}, owner{{2, 2}};
  SlotKeyOwner key;
  SlotEvaluator evaluator;
};

// Products of the sums of slot_shares() without their last bits.
std::vector<u64> products_of(const Session& session, const std::array<TorusVector, 2>& shares) {
  const u64 p = session.key.slots().prime();
  const auto one = slot_shares(shares[0], p, true), other = slot_shares(shares[1], p, false);
  std::vector<u64> out(one.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = (one[i] + other[i]) % (2 * p) / 2;
  session.key.slots().values(out);
  return out;
}

TEST(SlotProduct, ExactForNumbersOfEveryKindWithEveryPrime) {
  for (const SlotSet& set : kSlotSets)
    for (int prime = 0; prime < kMostSlotPrimes; ++prime) {
      const WideChoice choice = choose_slots(set, prime);
      EXPECT_LE(choice.log2_failure, kRequiredFailure);
      Session session(choice);
      const u64 p = set.messages[prime];
      const i64 n = set.ring.n;
      const std::vector<std::vector<u64>> kinds{numbers(n, p, 1),
                                                numbers(n, p, 2),
                                                std::vector<u64>(n, p - 1),
                                                std::vector<u64>(n, p / 2),
                                                std::vector<u64>(n, p / 2 + 1),
                                                numbers(5, p, 3)};
      i64 number = 0;
      for (const auto& x : kinds)
        for (const auto& y : kinds) {
          const auto out = products_of(session, session.shares(number++, x, y));
          for (i64 i = 0; i < n; ++i) {
            const bool both = i < std::ssize(x) && i < std::ssize(y);
            ASSERT_EQ(out[i], both ? static_cast<u64>(u128{x[i]} * y[i] % p) : 0) << i;
          }
        }
    }
}

// The deviation of noise, of the largest factors, beside the one that the bound is made of.
TEST(SlotProduct, NoiseStaysBelowItsBound) {
  for (const SlotSet& set : kSlotSets) {
    const WideChoice choice = choose_slots(set, 0);
    Session session(choice);
    const u64 p = set.messages[0];
    const i64 n = set.ring.n;
    // A polynomial whose coefficients are all about p / 2 in absolute value.
    std::vector<u64> y(n);
    std::mt19937_64 random(5);
    for (u64& c : y) c = p / 2 + (random() & 1);
    session.key.slots().values(y);
    double squares = 0, largest = 0;
    constexpr int kProducts = 8;
    for (int number = 0; number < kProducts; ++number) {
      const auto x = numbers(n, p, 10 + number);
      const auto shares = session.shares(number, x, y);
      std::vector<u64> exact(n);
      for (i64 i = 0; i < n; ++i) exact[i] = static_cast<u64>(u128{x[i]} * y[i] % p);
      const Slots& slots = session.key.slots();
      const auto coefficients = slots.coefficients(slots.placed(exact));
      for (i64 j = 0; j < n; ++j) {
        const Torus sum = shares[0][j] + shares[1][j];
        // p times the sum, with 64 bits of fraction.
        const u128 scaled = u128{sum.high} * p + static_cast<u64>(u128{sum.middle} * p >> 64);
        const double noise = std::ldexp(static_cast<double>(static_cast<i64>(scaled)), -64);
        const u64 nearest = static_cast<u64>((scaled + (u128{1} << 63)) >> 64) % p;
        const i64 c = static_cast<i64>(coefficients[j]);
        ASSERT_EQ(nearest, static_cast<u64>(c < 0 ? c + static_cast<i64>(p) : c));
        squares += noise * noise;
        largest = std::max(largest, std::abs(noise));
      }
    }
    const double deviation = std::sqrt(squares / static_cast<double>(kProducts * n));
    const double bound = 0.25 / std::sqrt(2 * std::log(2.) * (1 - choice.log2_failure));
    EXPECT_LT(deviation, bound);
    EXPECT_GT(deviation, bound / 8);
    EXPECT_LT(largest, 0.25);
  }
}

TEST(SlotProduct, SlotsHaveOneOrderAndMultiply) {
  const u64 p = kSlotSets[0].messages[0];
  const Slots slots(4096, p);
  std::vector<u64> x(4096, 0);
  x[1] = 1;  // X: the values are the roots, in order
  slots.values(x);
  EXPECT_TRUE(std::ranges::is_sorted(x));
  u64 power = 1;
  for (int i = 0; i < 4096; ++i) power = static_cast<u64>(u128{power} * x[17] % p);
  EXPECT_EQ(power, p - 1);
  const auto y = numbers(4096, p, 4);
  const auto coefficients = slots.coefficients(slots.placed(y));
  std::vector<u64> back(4096);
  for (size_t i = 0; i < back.size(); ++i) {
    const i64 c = static_cast<i64>(coefficients[i]);
    back[i] = static_cast<u64>(c < 0 ? c + static_cast<i64>(p) : c);
  }
  slots.values(back);
  EXPECT_EQ(back, y);
}

TEST(SlotProduct, RefusesMessagesOfTheWrongLength) {
  const WideChoice choice = choose_slots(kSlotSets[0], 0);
  Session session(choice);
  std::vector<u8> shorter(slot_upload_bytes(choice) - 1), answer(slot_answer_bytes(choice));
  EXPECT_THROW(session.evaluator.answer(0, shorter, {}, answer), ProtocolError);
  EXPECT_THROW(session.key.read_answer(Bytes(answer).first(answer.size() - 1)), ProtocolError);
  EXPECT_THROW(SlotEvaluator(choice, session.digest, shorter, session.owner), ProtocolError);
  EXPECT_THROW(choose_slots(kSlotSets[0], 2), InvalidArgument);
}

TEST(SlotParameters, SetsAreSecureAndStateTheirModulus) {
  for (const SlotSet& set : kSlotSets) {
    EXPECT_LE(set.ring.log_q, standard_modulus_bits(set.ring.n));
    EXPECT_GE(std::min(set.ring.security.gates, set.ring.security.core_svp), kRequiredBits);
    for (int prime = 0; prime < kMostSlotPrimes; ++prime) {
      const WideChoice choice = choose_slots(set, prime);
      double log_q = 0;
      for (const u64 p : choice.set.used()) log_q += std::log2(static_cast<double>(p));
      EXPECT_NEAR(log_q, set.ring.log_q, 0.02);
      EXPECT_LT(choice.upload_bits, log_q);  // no finer than 1 / q
      EXPECT_EQ(std::bit_width(set.messages[prime]), set.message_bits());
    }
  }
}

}  // namespace
}  // namespace privml::lattice
