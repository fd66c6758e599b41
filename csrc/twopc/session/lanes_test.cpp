// SPDX-License-Identifier: Apache-2.0
#include "twopc/session/lanes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "twopc/compare/relu.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace ot::testing;
using namespace twopc::testing;

TEST(DivideOverLanes, RangesAreContiguousAndLargeEnough) {
  for (const i64 n : {0, 1, 7, 63, 64, 65, 1000, 4096, 10'000, 65'537}) {
    for (const i64 lanes : {1, 2, 3, 7}) {
      for (const i64 least : {i64{1}, i64{10}, kLaneElements}) {
        SCOPED_TRACE(::testing::Message() << n << " over " << lanes << ", least " << least);
        const auto ranges = divide_over_lanes(n, lanes, least);
        ASSERT_GE(ranges.size(), 1u);
        ASSERT_LE(std::ssize(ranges), lanes);
        i64 next = 0;
        for (const LaneRange& range : ranges) {
          EXPECT_EQ(range.begin, next);
          next += range.count;
          EXPECT_TRUE(n == 0 || range.count > 0);
        }
        EXPECT_EQ(next, n);
        EXPECT_TRUE(n >= 2 * least || ranges.size() == 1);
        EXPECT_TRUE(n < lanes * std::max(least, 64 * lanes) || std::ssize(ranges) == lanes);
      }
    }
  }
}

TEST(RunOnLanes, EveryLaneRunsOnAThreadOfItsOwn) {
  Both<std::thread::id> ids;
  run_on_lanes(2, [&](i64 lane) { ids[lane] = std::this_thread::get_id(); }, [](i64) { FAIL(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_NE(ids[1], ids[0]);
}

TEST(RunOnLanes, TheFirstErrorIsRethrownAfterAllHaveEnded) {
  std::atomic<bool> wake = false;
  std::atomic<int> ended = 0, failures = 0;
  const auto body = [&](i64 lane) {
    if (lane == 2) throw std::out_of_range("the cause");
    while (!wake) std::this_thread::yield();
    ++ended;
    throw std::runtime_error("a consequence");
  };
  EXPECT_THROW(run_on_lanes(3, body,
                            [&](i64) {
                              ++failures;
                              wake = true;
                            }),
               std::out_of_range);
  EXPECT_EQ(ended, 2);
  EXPECT_EQ(failures, 3);
}

// Both parties with `lanes` sessions each; body(parties) runs once per party.
void with_lanes(i64 lanes, const ot::OtConfig& config,
                const std::function<void(int, std::vector<ot::Party*>&)>& body) {
  std::vector<Both<std::unique_ptr<net::Channel>>> channels(lanes);
  for (auto& pair : channels) std::tie(pair[0], pair[1]) = net::make_memory_channels();
  const auto close = [&] {
    for (auto& pair : channels) {
      for (auto& channel : pair) channel->close();
    }
  };
  run_pair(
      [&](int rank) {
        std::vector<std::unique_ptr<ot::PartyResources>> resources(lanes);
        run_on_lanes(
            lanes,
            [&](i64 lane) {
              resources[lane] = ot::make_party_resources(*channels[lane][rank], rank, config);
            },
            [&](i64) { close(); });
        std::vector<ot::Party*> parties;
        for (auto& each : resources) parties.push_back(&each->party());
        body(rank, parties);
      },
      close);
}

TEST(Lanes, ReluOverThreeLanesEqualsReluOverOne) {
  constexpr i64 kCount = 3 * kLaneElements + 77;
  constexpr int kWidth = 32;
  const Words clear = random_words(kCount, kWidth);
  const Both<Words> x = share(clear, kWidth);
  for (const i64 lanes : {1, 2, 3}) {
    Both<Words> out;
    with_lanes(lanes, test_config("softspoken"), [&](int rank, std::vector<ot::Party*>& parties) {
      const std::span<const u64> in = x[rank];
      out[rank].resize(kCount);
      const std::span<u64> result = out[rank];
      const auto ranges = divide_over_lanes(kCount, lanes);
      ASSERT_EQ(std::ssize(ranges), lanes);
      run_on_lanes(
          lanes,
          [&](i64 lane) {
            const auto [begin, count] = ranges[lane];
            relu(*parties[lane], in.subspan(begin, count), kWidth, result.subspan(begin, count));
            parties[lane]->channel.flush();
          },
          [&](i64) {
            for (ot::Party* party : parties) party->channel.close();
          });
    });
    for (i64 i = 0; i < kCount; ++i) {
      const u64 sum = (out[0][i] + out[1][i]) & 0xffffffff;
      ASSERT_EQ(sum, clear[i] >> 31 ? 0 : clear[i]) << lanes << " lanes, element " << i;
    }
  }
}

// What each lane of each party sends in a ReLU over three lanes on fixed seeds.
std::vector<std::string> traces() {
  constexpr i64 kLanes = 3, kCount = kLanes * kLaneElements;
  std::vector<Both<std::unique_ptr<net::RecordedChannel>>> channels(kLanes);
  for (auto& pair : channels) {
    auto [first, second] = net::make_memory_channels();
    pair = {std::make_unique<net::RecordedChannel>(std::move(first)),
            std::make_unique<net::RecordedChannel>(std::move(second))};
  }
  const auto close = [&] {
    for (auto& pair : channels) {
      for (auto& channel : pair) channel->close();
    }
  };
  const Words x(kCount, 7);
  run_pair(
      [&](int rank) {
        run_on_lanes(
            kLanes,
            [&](i64 lane) {
              ot::OtConfig config = test_config("softspoken");
              config.test_seed->hi ^= static_cast<u64>(lane) << 32;
              const auto resources = ot::make_party_resources(*channels[lane][rank], rank, config);
              Words out(kLaneElements);
              relu(resources->party(), std::span(x).subspan(lane * kLaneElements, kLaneElements),
                   32, out);
              channels[lane][rank]->flush();
            },
            [&](i64) { close(); });
      },
      close);
  std::vector<std::string> hashes;
  for (auto& pair : channels) {
    for (auto& channel : pair) hashes.push_back(channel->sent_hash());
  }
  return hashes;
}

TEST(Lanes, FixedSeedsGiveEveryLaneTheSameWireTraceInEveryRun) {
  const auto first = traces();
  EXPECT_EQ(first, traces());
  for (size_t i = 0; i < first.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(first[i], first[j]) << "lanes share randomness";
  }
}

TEST(Lanes, AFailingLaneEndsAllAtBothParties) {
  Both<i64> ended{};
  const auto run = [&] {
    with_lanes(3, test_config("softspoken"), [&](int rank, std::vector<ot::Party*>& parties) {
      const auto close = [&](i64) {
        ++ended[rank];
        for (ot::Party* party : parties) party->channel.close();
      };
      run_on_lanes(
          3,
          [&](i64 lane) {
            if (rank == 0 && lane == 1) throw std::out_of_range("the cause");
            u8 byte;
            parties[lane]->channel.read({&byte, 1});  // which nobody sends
          },
          close);
    });
  };
  EXPECT_THROW(run(), std::out_of_range);
  EXPECT_EQ(ended[0], 3);
  EXPECT_EQ(ended[1], 3);
}

}  // namespace
}  // namespace privml::twopc
