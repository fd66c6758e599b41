// SPDX-License-Identifier: Apache-2.0
// For tests: sessions with the ideal supply in which one bit of a dishonest peer's messages is
// flipped.
#pragma once

#include "ot/testing/tampered.h"
#include "spdz2k/testing/parties.h"

namespace privml::spdz2k::testing {

// How an honest party's run ended against a peer of whose messages one bit was flipped.
struct TamperedRun {
  bool aborted = false;    // the honest party threw SecurityAbort
  bool completed = false;  // the honest party finished
  bool flipped = false;
  std::vector<i64> message_bytes;  // of the messages the dishonest party wrote, the start included
};

inline TamperedRun seen_by_the_honest(int dishonest, const ot::testing::TamperedRun& run) {
  const ot::testing::Ending ending = run.ending[1 - dishonest];
  return {ending == ot::testing::Ending::aborted, ending == ot::testing::Ending::completed,
          run.flipped, run.message_bytes};
}

// `body` ends in a reveal; party `dishonest` sends what `flip` changes.
template <class R>
TamperedRun run_tampered(int dishonest, std::optional<net::testing::Flip> flip,
                         const std::function<void(Session<R>&)>& body) {
  const auto party = [&](int rank, net::Channel& channel) {
    crypto::Prg prg({static_cast<u64>(rank), 0x13198a2e});
    const auto supply = make_ideal_supply<R>(kSeed, rank);
    Session<R> session(rank, channel, prg, ideal_key<R>(kSeed, rank));
    session.set_supply(*supply);
    body(session);
  };
  return seen_by_the_honest(dishonest, ot::testing::run_tampered_pair(dishonest, flip, party));
}

// Flips bits of every message that party `dishonest` sends in `body`, which ends by revealing: the
// honest party ends in SecurityAbort each time. The chosen bits always have a meaning: they lie in
// the first third of a message, before the commitments that only a later coin toss opens, and
// not at the top of a masked sum, where a change may be no change mod 2^s.
template <class R>
void expect_every_flip_aborts(const std::function<void(Session<R>&)>& body) {
  for (const int dishonest : {0, 1}) {
    const TamperedRun clean = run_tampered<R>(dishonest, {}, body);
    ASSERT_TRUE(clean.completed);
    for (i64 message = 0; message < std::ssize(clean.message_bytes); ++message) {
      const i64 bits = 8 * clean.message_bytes[message];
      for (const i64 bit : {i64{0}, bits / 5, bits / 3}) {
        SCOPED_TRACE(::testing::Message() << "party " << dishonest << ", message " << message
                                          << ", bit " << bit << " of " << bits);
        const net::testing::Flip flip{message, bit};
        const TamperedRun run = run_tampered<R>(dishonest, flip, body);
        EXPECT_TRUE(run.flipped);
        EXPECT_TRUE(run.aborted);
        EXPECT_FALSE(run.completed);
      }
    }
  }
}

}  // namespace privml::spdz2k::testing
