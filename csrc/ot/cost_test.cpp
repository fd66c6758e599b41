// SPDX-License-Identifier: Apache-2.0
// The meter against real traffic and ledgers, and the wire traces of every function.
#include "ot/cost.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "ot/derive.h"
#include "ot/schedule.h"
#include "ot/testing/parties.h"

namespace privml::testing {
namespace {

struct Scenario {
  std::string name;
  std::function<void(Party&)> run;
  std::function<void(CostMeter&)> cost;
};

void choose(Party& party, int sender, i64 count, std::vector<Block>& correlations) {
  correlations.resize(count);
  if (party.rank == sender) {
    choose_send(party, correlations.data(), count);
  } else {
    choose_receive(party, std::vector<u8>(count, 1), correlations.data());
  }
}

Scenario additive(int sender, i64 count, i64 length, int width) {
  const auto run = [=](Party& party) {
    std::vector<Block> correlations;
    choose(party, sender, count, correlations);
    std::vector<u64> in(count * length, 3), out(count * length);
    if (party.rank == sender) {
      additive_send(party, correlations.data(), in, length, width, out);
    } else {
      additive_receive(party, correlations.data(), std::vector<u8>(count, 1), length, width, out);
    }
  };
  const auto cost = [=](CostMeter& meter) {
    cost_choose(meter, sender, count);
    cost_additive(meter, sender, count, length, width);
  };
  return {"additive_" + std::to_string(length) + "_" + std::to_string(width), run, cost};
}

Scenario one_of_n(int sender, i64 count, int m, int width) {
  const auto run = [=](Party& party) {
    std::vector<Block> correlations;
    choose(party, sender, count * m, correlations);
    if (party.rank == sender) {
      one_of_n_send(party, correlations.data(), m, width, std::vector<u64>(count << m, 1));
    } else {
      std::vector<u64> out(count);
      const u8 last = static_cast<u8>((1 << m) - 1);
      one_of_n_receive(party, correlations.data(), std::vector<u8>(count, last), m, width, out);
    }
  };
  const auto cost = [=](CostMeter& meter) {
    cost_choose(meter, sender, count * m);
    cost_one_of_n(meter, sender, count, m, width);
  };
  return {"one_of_n_" + std::to_string(m) + "_" + std::to_string(width), run, cost};
}

Scenario triples(i64 count, int width) {
  const auto run = [=](Party& party) {
    std::vector<u8> a(count), b(count), c(count);
    bit_triples(party, count, width, a, b, c);
  };
  return {"bit_triples_" + std::to_string(width), run,
          [=](CostMeter& meter) { cost_bit_triples(meter, count); }};
}

Scenario in_sequence(std::string name, std::vector<Scenario> parts) {
  return {std::move(name),
          [=](Party& party) {
            for (const Scenario& part : parts) part.run(party);
          },
          [=](CostMeter& meter) {
            for (const Scenario& part : parts) part.cost(meter);
          }};
}

Scenario reservation(i64 sender0, i64 sender1) {
  return {"reserve",
          [=](Party& party) {
            party.rank == 0 ? reserve(party, sender0, sender1) : reserve(party, sender1, sender0);
          },
          [=](CostMeter& meter) { meter.reserve(sender0, sender1); }};
}

Scenario drawing(int sender, i64 count) {
  return {"draw",
          [=](Party& party) {
            std::vector<Block> out(count);
            party.rank == sender ? draw_as_sender(party, out.data(), count)
                                 : draw_as_receiver(party, out.data(), count);
          },
          [=](CostMeter& meter) { meter.draw(sender, count); }};
}

std::vector<Scenario> scenarios() {
  std::vector<Scenario> all{
      additive(0, 1000, 1, 32), additive(1, 1001, 1, 37), additive(1, 33, 77, 13),
      one_of_n(0, 1003, 4, 2),  one_of_n(1, 500, 4, 1),   one_of_n(0, 501, 3, 1),
      one_of_n(1, 77, 8, 32),   one_of_n(0, 77, 6, 4),    one_of_n(1, 129, 1, 64),
      triples(1000, 1),         triples(777, 2)};
  all.push_back(in_sequence(
      "everything",
      {reservation(5000, 100), drawing(0, 4000), reservation(3000, 20000), one_of_n(0, 300, 4, 2),
       one_of_n(1, 300, 4, 2), triples(2000, 2), additive(1, 2000, 1, 64), reservation(0, 0),
       drawing(1, 1), drawing(0, 9000), triples(1, 1), additive(0, 5, 300, 32)}));
  return all;
}

void expect_equal_cost(const OtConfig& config, const Scenario& scenario) {
  const SessionRecord record = run_session(config, scenario.run);
  CostMeter setup(rcot_cost(config));
  cost_party_resources(setup);
  CostMeter meter = setup;
  scenario.cost(meter);
  for (int rank : {0, 1}) {
    const Ledger& ledger = record.ledger[rank];
    const PhaseCount& booked_setup = ledger.phases[static_cast<int>(Phase::setup)];
    EXPECT_EQ(booked_setup.sent, setup.bytes[rank]);
    EXPECT_EQ(booked_setup.received, setup.bytes[1 - rank]);
    EXPECT_EQ(booked_setup.depth, setup.depth[rank]);
    EXPECT_EQ(record.traffic[rank].sent, meter.bytes[rank] - setup.bytes[rank]);
    EXPECT_EQ(record.traffic[rank].received, meter.bytes[1 - rank] - setup.bytes[1 - rank]);
    EXPECT_EQ(record.traffic[rank].depth, meter.depth[rank] - setup.depth[rank]);
    const PhaseCount& preprocess = ledger.phases[static_cast<int>(Phase::preprocess)];
    EXPECT_EQ(preprocess.sent, meter.preprocess_bytes[rank]);
    EXPECT_EQ(preprocess.received, meter.preprocess_bytes[1 - rank]);
    EXPECT_EQ(preprocess.depth, meter.preprocess_depth[rank]);
    EXPECT_EQ(ledger.cots_as_sender, meter.cots[rank]);
    EXPECT_EQ(ledger.cots_as_receiver, meter.cots[1 - rank]);
    EXPECT_EQ(ledger.phases[static_cast<int>(Phase::online)].sent, 0);
  }
}

class MeterEquality : public ::testing::TestWithParam<OtConfig> {};

TEST_P(MeterEquality, BytesDepthAndCorrelationsOfEveryFunction) {
  // Every function by itself with the ideal provider, which is fast; all of them in one session
  // with others.
  if (GetParam().provider == "ideal") {
    for (const Scenario& scenario : scenarios()) {
      SCOPED_TRACE(scenario.name);
      expect_equal_cost(GetParam(), scenario);
    }
  }
  expect_equal_cost(GetParam(), in_sequence("all", scenarios()));
}

std::vector<OtConfig> measured_providers() {
  std::vector<OtConfig> configs{test_config("ideal"), test_config("silent", 0),
                                test_config("silent", 0, "malicious")};
  for (int k : {1, 2, 4, 8}) configs.push_back(test_config("softspoken", k));
  for (int k : {1, 3, 4, 10}) configs.push_back(test_config("softspoken", k, "malicious"));
  return configs;
}

INSTANTIATE_TEST_SUITE_P(Providers, MeterEquality, ::testing::ValuesIn(measured_providers()),
                         [](const auto& info) {
                           return info.param.provider + "_" + std::to_string(info.index);
                         });

TEST(Meter, BatchesOfALongReservation) {
  // More than one batch in one direction, a fraction of one in the other.
  const i64 n = 2 * rcot_cost(test_config("softspoken")).tile + 1000;
  expect_equal_cost(test_config("softspoken", 4),
                    in_sequence("long", {reservation(n, 70000), drawing(0, n), drawing(1, 60000)}));
}

TEST(Meter, MessagesOfNoBytesCostNothing) {
  CostMeter meter(rcot_cost(test_config("softspoken")));
  meter.message(0, 0);
  meter.exchange(0, 0);
  EXPECT_EQ(meter.depth, (std::array<i64, 2>{0, 0}));
  meter.exchange(0, 5);
  EXPECT_EQ(meter.depth, (std::array<i64, 2>{1, 0}));
  meter.message(0, 1);
  EXPECT_EQ(meter.depth, (std::array<i64, 2>{1, 2}));
  meter.exchange(1, 1);
  EXPECT_EQ(meter.depth, (std::array<i64, 2>{3, 2}));
  EXPECT_EQ(meter.bytes, (std::array<i64, 2>{2, 6}));
}

TEST(Meter, CountsCorrelationsOfAProtocol) {
  const CostMeter planner{RcotCost{"ideal", 0, 1, 1}};
  const auto counts = count_correlations(planner, [](CostMeter& meter) {
    cost_bit_triples(meter, 100);
    cost_choose(meter, 1, i64{1} << 22);
  });
  EXPECT_EQ(counts, (std::array<i64, 2>{100, 100 + (i64{1} << 22)}));
}

TEST(Meter, CorrectionBytesPerCorrelation) {
  for (const auto& [k, bits] : std::map<int, i64>{{1, 127}, {2, 63}, {3, 42}, {4, 31}, {8, 15}}) {
    EXPECT_EQ(rcot_cost(test_config("softspoken", k)).message_bytes(0, 8192), bits * 8192 / 8);
    // A block of columns that hides the others, and the proof.
    const RcotCost malicious = rcot_cost(test_config("softspoken", k, "malicious"));
    EXPECT_EQ(malicious.message_bytes(0, 8192), bits * (8192 + 128) / 8 + 48);
    EXPECT_EQ(malicious.message_bytes(0, 0), 0);
  }
}

TEST(LinkClock, MessagesWaitForTheirDirectionAndTheirDelay) {
  CostMeter meter{RcotCost{"ideal", 0, 1, 1}};
  meter.set_link(0.5, 0.001, 0);
  meter.message(0, 100);
  EXPECT_EQ(meter.link.now, (std::array<double, 2>{0, 0.1 + 0.5}));
  // Party 0 sends again at once, party 1 when it has read; the directions do not disturb each
  // other.
  meter.exchange(200, 100);
  EXPECT_DOUBLE_EQ(meter.link.now[1], 0.1 + 0.2 + 0.5);
  EXPECT_DOUBLE_EQ(meter.link.now[0], 0.6 + 0.1 + 0.5);
  meter.link.compute(2);
  meter.message(1, 0);
  EXPECT_DOUBLE_EQ(meter.link.now[1], 2.8);
  EXPECT_DOUBLE_EQ(meter.link.now[0], 3.2);
}

TEST(LinkClock, WithoutALinkNothingTakesTime) {
  CostMeter meter{rcot_cost(test_config("softspoken", 4))};
  scenarios().back().cost(meter);
  EXPECT_EQ(meter.link.now, (std::array<double, 2>{0, 0}));
  EXPECT_GT(meter.depth[0], 0);
}

TEST(LinkClock, ARefillsCorrelationsTakeTimeBesideTheProtocols) {
  const RcotCost rcot = rcot_cost(test_config("softspoken", 4));
  const double making = 1e-6 * static_cast<double>(rcot.tile);
  CostMeter beside{rcot}, within{rcot};
  beside.begin_refill();
  for (CostMeter* meter : {&beside, &within}) {
    meter->set_link(0.25, 0, 1e-6);
    meter->announce(rcot.tile, 0);
  }
  EXPECT_DOUBLE_EQ(within.link.now[0], making + 0.25);
  EXPECT_EQ(beside.link.now[0], 0);
  beside.link.compute(3 * making);
  beside.draw(0, 1);  // made long ago
  EXPECT_DOUBLE_EQ(beside.link.now[0], std::max(3 * making, making + 0.25));
}

// A change of these values is a change of the protocol on the wire.
TEST(WireTrace, IsAFunctionOfTheTestSeeds) {
  const std::map<std::string, std::array<std::string, 2>> expected{
      {"ideal4",
       {"0146fb85e8c70ee516f543c9d9d3767c94a97314121af6ceea92e2fa35fefdac",
        "fecd24bedf2210067818c6df93c800c52362b45a9a1edae93bcf3a1a17ab2008"}},
      {"silent0_malicious",
       {"8c1e402dd58e1f3d5be99b6389295acc30c5107b2bb25eb3bc7b735e57253b5d",
        "056d652e937f7f1cd0492a50195452f641371960bbf5cbcca3b402b818feda01"}},
      {"silent0",
       {"d3182ea64bbe62a0fb2550b5596de59d97c6dd49476e1577636a250df17ee838",
        "07e0e7c4bd5bfe21b49ba5a4a9c7ba774839ab4f6424c635f08f8baad3078ca5"}},
      {"softspoken1",
       {"47a93ab6f118b9e61fe13487f19f20b030ad98cc72d572f7ad6098396adab0f4",
        "b6fc1b17036178b1af5c307968d59a15d4fccb2d0bcb9b27a58b1efdb1b75f96"}},
      {"softspoken2",
       {"55458f136452406e200217e68e957c5a8b85d4439e040ce6f5fde61a3c5414fe",
        "d166292b99ada3f12599cabac26f2910359e87e811b80979f8f036a03fc9620c"}},
      {"softspoken4",
       {"ab05cbd03067dd2a86bb6036f02c5b46b0218d850796a03681eeb0f0229745d0",
        "708fd07bf88a71acba8d4411cb763bb17e779ffc2780e9544d7d052efcb6b7d0"}},
      {"softspoken8",
       {"a37ac09a68a4e5ab72840bc5de8e6906ae70bbd84df90ac0f38766698dbe8c8c",
        "7184469ecc59f618af9084f589a3ced1988ce85120b25a5271ab7e5d2c669086"}},
      {"softspoken1_malicious",
       {"bce48354ada25b27cbb3bf7ca9827127211d1b04f443990ca555a23639764b22",
        "7ff0e49781daa6447e5f1ccc9777129eda0d42459b6346291d68efbdc9a4f6d3"}},
      {"softspoken3_malicious",
       {"4af39cfc31e3a0ec2cdd9eb4dbdc1bbfaff960cb910cb909ecd0bd4d62b76c14",
        "7ed57d07cf9bfc834020d78478fc16118149144820c4acdbad23a46c1d33a8ad"}},
      {"softspoken4_malicious",
       {"6af0bcccf51b53b7d4058da2b3a436b515a421b799f35286bdfbf0c45fa88b40",
        "f4f467a3b28d7cca3b27cde1af62a8d53014f2cd72ed08b7b3a396b8af4a0c7f"}},
      {"softspoken10_malicious",
       {"7b75de997b83439c22b40d4b3fad80147b5acddd9882a19170672424b80bd3a3",
        "78e8778b51b9ba4dbed51bc463d7e78779db9201106ee95ed8cdedcc0b610252"}},
  };
  const Scenario everything = scenarios().back();
  for (const OtConfig& config : measured_providers()) {
    const std::string name = config.provider + std::to_string(config.k) +
                             (config.security == "malicious" ? "_malicious" : "");
    EXPECT_EQ(run_session(config, everything.run).sent_hash, expected.at(name)) << name;
  }
}

}  // namespace
}  // namespace privml::testing
