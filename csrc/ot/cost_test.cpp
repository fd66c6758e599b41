// SPDX-License-Identifier: Apache-2.0
// The meter against real traffic and ledgers, and the wire traces of every function.
#include "ot/cost.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "ot/derive.h"
#include "ot/schedule.h"
#include "ot/testing/parties.h"

namespace privml::ot::testing {
namespace {

struct Scenario {
  std::string name;
  std::function<void(Party&)> run;
  std::function<void(CostMeter&)> cost;
};

void choose(Party& party, int sender, i64 count, std::vector<crypto::Block>& correlations) {
  correlations.resize(count);
  if (party.rank == sender) {
    choose_send(party, correlations.data(), count);
  } else {
    choose_receive(party, std::vector<u8>(count, 1), correlations.data());
  }
}

Scenario additive(int sender, i64 count, i64 length, int width) {
  const auto run = [=](Party& party) {
    std::vector<crypto::Block> correlations;
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
    std::vector<crypto::Block> correlations;
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
            std::vector<crypto::Block> out(count);
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
       {"f27dad2b1d3c68c9e5b7f0885df13ea66fe276d1c6f400644ace0ece355c44f8",
        "c9692c606cf73d2f53f99adb81dfc6fc1b48e6dc59f4bf5c56a7c736420a804c"}},
      {"silent0",
       {"a3c111fa449fa8d1056be83f55ea866f941e1c6c2877e7fb99f6c800b4d0d4cb",
        "d780750a782f0957d9da660344bd75368067700667a324b526c1d05158813756"}},
      {"softspoken1",
       {"3874f4cc57fcd660fa7b92210e8e0794bc2456da8a2245c56e34cd779b7e3e2a",
        "53deeb284e211f8264e7f8ea6bfd3c9a2f72afc65e4dea7952b68a30b7f97c57"}},
      {"softspoken2",
       {"a857f5f2c1823c5fc19eebf45275b2141c61d9eeb4c1a9d1c8d05d0cf28e5404",
        "26c8c331345455e51b30802258b4efa0e400fa806d6081eec957192101ed2562"}},
      {"softspoken4",
       {"717102327725997f9db1ff4d96e9ea32bd12dcd831ae835849bb21eb8d67a8c7",
        "8e7259995bb00a745f70e7bfb5d5b1ad34bdc79f751a3d67b6d7ad09fda240db"}},
      {"softspoken8",
       {"25e18e12ebbdaf6540420df45c1286d46d34c9bad61e164885da63a9062826ef",
        "d1d57601feb2913a89a976096e797ba1a8be24f2430dcced74093b9fea0ab2d7"}},
      {"softspoken1_malicious",
       {"71a72a7904374732af4f12cec2ae435daf4f66a9a0540a9d33738d2e7c5f3c08",
        "efa381cb661b252ef7d0f90093f99ba36743cec32a56f0bde15c04c8490d8831"}},
      {"softspoken3_malicious",
       {"ff6a4ddc0b88a9a349557ad12b7f363d5a76bbcecc0cd586eeae7c8e990a77a7",
        "9a38387c67d2bc4f9bdd0029c3d4dcc45ac3deb402b3db878630f8eb995bcf95"}},
      {"softspoken4_malicious",
       {"4fddd6ded76e92c6e3fd4dfb0d1ef0444c49261e590ed50495a8930576b2acc7",
        "456aa49cb2bcfed4581bf0175e270272e8ef17ebd5c55752def29dae8857b526"}},
      {"softspoken10_malicious",
       {"4063c0f0ebc601a3cf6e60afc9cfecffb51d3e373d67f42e2a4a2e178b96fe7b",
        "472bc5d29837df0867174efd48ed018ee4acff493baa3888e55ae915c89fe7ae"}},
  };
  const Scenario everything = scenarios().back();
  for (const OtConfig& config : measured_providers()) {
    const std::string name = config.provider + std::to_string(config.k) +
                             (config.security == "malicious" ? "_malicious" : "");
    EXPECT_EQ(run_session(config, everything.run).sent_hash, expected.at(name)) << name;
  }
}

}  // namespace
}  // namespace privml::ot::testing
