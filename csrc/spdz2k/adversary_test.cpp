// SPDX-License-Identifier: Apache-2.0
// Whole sessions against a peer whose messages are altered; `make prove-active` alters every
// message in every way, this test a sample.
#include "spdz2k/testing/adversary.h"

#include "base/testing/sanitized.h"

namespace privml::spdz2k::testing {
namespace {

using namespace std::chrono_literals;

template <class R>
void expect_right_or_noticed(i64 attacks) {
  for (const int dishonest : {0, 1}) {
    const auto clean = run_altered<R>(dishonest, -1, Alteration::none, 60s);
    ASSERT_EQ(clean.verdict, Verdict::right) << clean.what;
    const i64 messages = std::ssize(clean.parts);
    i64 noticed = 0;
    for (i64 i = 0; i < attacks; ++i) {
      const i64 message = (2 * i + 1) * messages / (2 * attacks);
      const Alteration alteration =
          spdz2k::testing::kAlterations[(3 * i + dishonest) % spdz2k::testing::kAlterations.size()];
      const auto deadline = spdz2k::testing::may_stall(alteration) ? 200ms : 60s;
      const auto outcome = run_altered<R>(dishonest, message, alteration, deadline);
      SCOPED_TRACE(::testing::Message()
                   << "party " << dishonest << ", message " << message << " of " << messages << " ("
                   << clean.parts[message] << "): " << name_of(alteration) << "; " << outcome.what);
      EXPECT_NE(outcome.verdict, Verdict::wrong);
      EXPECT_NE(outcome.verdict, Verdict::crashed);
      noticed += outcome.verdict != Verdict::right;
    }
    EXPECT_GT(2 * noticed, attacks);
  }
}

TEST(Spdz2kAdversary, SessionsOf32BitsAreRightOrEnd) {
  expect_right_or_noticed<Ring32>(privml::testing::kSanitized ? 5 : 11);
}
TEST(Spdz2kAdversary, SessionsOf64BitsAreRightOrEnd) { expect_right_or_noticed<Ring64>(3); }

}  // namespace
}  // namespace privml::spdz2k::testing
