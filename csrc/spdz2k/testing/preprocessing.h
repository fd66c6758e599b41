// SPDX-License-Identifier: Apache-2.0
// For tests of generators: both parties with their correlated OTs, a session under the ideal
// supply's key (so that parties.h reconstructs), and a dishonest peer that flips bits.
#pragma once

#include "base/testing/sanitized.h"
#include "ot/testing/tampered.h"
#include "spdz2k/preprocessing/authentication.h"
#include "spdz2k/testing/parties.h"

namespace privml::spdz2k::testing {

inline ot::OtConfig malicious_config(const std::string& provider = "softspoken") {
  return ot::testing::test_config(provider, 4, "malicious");
}

template <class R>
std::function<void(ot::Party&)> with_authentication(
    const std::function<void(Authentication<R>&)>& body) {
  return [body](ot::Party& party) {
    Session<R> session(party.rank, party.channel, party.prg, ideal_key<R>(kSeed, party.rank));
    const auto supply = make_ideal_supply<R>(kSeed, party.rank);
    session.set_supply(*supply);
    Authentication<R> authentication(session, party);
    body(authentication);
  };
}

template <class R>
ot::testing::SessionRecord run_generator(const ot::OtConfig& config,
                                         const std::function<void(Authentication<R>&)>& body) {
  return ot::testing::run_session(config, with_authentication<R>(body));
}

// Bytes, depth and correlated OTs equal those of `cost`, called after the start of session and
// authentication.
template <class R, class Cost>
void expect_generator_cost(const ot::OtConfig& config, const ot::testing::SessionRecord& record,
                           Cost&& cost) {
  ot::CostMeter meter(ot::rcot_cost(config));
  meter.exchange(sizeof(Commitment), sizeof(Commitment));
  cost_authentication_setup<R>(meter);
  cost(meter);
  for (int rank : {0, 1}) {
    SCOPED_TRACE(::testing::Message() << "party " << rank);
    EXPECT_EQ(record.traffic[rank].sent, meter.bytes[rank]);
    EXPECT_EQ(record.traffic[rank].received, meter.bytes[1 - rank]);
    EXPECT_EQ(record.traffic[rank].depth, meter.depth[rank]);
    EXPECT_EQ(record.ledger[rank].cots_as_sender, meter.cots[rank]);
    EXPECT_EQ(record.ledger[rank].cots_as_receiver, meter.cots[1 - rank]);
  }
}

// Of 2^14 numbers of Ring8 every value comes up about as often as it should: in sum, and of party
// 0's shares.
inline void expect_uniform(const Both<WordShares<Ring8>>& shares) {
  for (const auto& part : {reconstruct<Ring8>(shares, Ring8::k),
                           Words(shares[0].value.begin(), shares[0].value.end())}) {
    ASSERT_EQ(part.size(), 1u << 14);
    std::array<int, 256> counts{};
    for (const u64 value : part) ++counts[value & 255];
    for (const int count : counts) {
      EXPECT_GT(count, 24);  // expected 64, deviation 8
      EXPECT_LT(count, 104);
    }
  }
}

// Tests of altered messages alter each of them, or every fifth one under sanitizers; odd, as the
// parties take turns.
inline constexpr i64 kMessageStep = privml::testing::kSanitized ? 5 : 1;

// Runs `body` with one bit of each message of each party flipped, `flips` places in turn: either a
// party ends in SecurityAbort or ProtocolError, or right() says that what the parties got is right.
// At least one flip of each message that is not the last must be detected.
template <class R>
void expect_flips_do_no_harm(const std::function<void(Authentication<R>&)>& body,
                             const std::function<bool()>& right, int flips) {
  using net::testing::Flip;
  const ot::OtConfig config = malicious_config("ideal");
  const auto work = with_authentication<R>(body);
  for (const int dishonest : {0, 1}) {
    const auto clean = ot::testing::run_tampered(config, dishonest, {}, work);
    ASSERT_FALSE(clean.detected());
    ASSERT_TRUE(right());
    const i64 messages = std::ssize(clean.message_bytes);
    for (i64 message = 0; message < messages; message += kMessageStep) {
      const i64 bits = 8 * clean.message_bytes[message];
      int detected = 0;
      for (int i = 0; i < flips; ++i) {
        const i64 bit = (2 * i + 1) * bits / (2 * flips);
        SCOPED_TRACE(::testing::Message() << "party " << dishonest << ", message " << message
                                          << ", bit " << bit << " of " << bits);
        const auto run =
            ot::testing::run_tampered(config, dishonest, net::testing::Flip{message, bit}, work);
        EXPECT_TRUE(run.flipped);
        if (run.detected()) {
          ++detected;
        } else {
          EXPECT_TRUE(right());
        }
      }
      EXPECT_GT(detected, 0) << "party " << dishonest << ", message " << message << " of "
                             << messages;
    }
  }
}

}  // namespace privml::spdz2k::testing
