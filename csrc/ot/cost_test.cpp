// SPDX-License-Identifier: Apache-2.0
// The meter against real traffic and ledgers, and the wire traces of every function.
#include "ot/cost.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "ot/derive.h"
#include "ot/parties_testing.h"
#include "ot/schedule.h"

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
  std::vector<OtConfig> configs{test_config("ideal"), test_config("silent", 0)};
  for (int k : {1, 2, 4, 8}) configs.push_back(test_config("softspoken", k));
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
  const auto counts = count_correlations(0, [](CostMeter& meter) {
    cost_bit_triples(meter, 100);
    cost_choose(meter, 1, i64{1} << 22);
  });
  EXPECT_EQ(counts, (std::array<i64, 2>{100, 100 + (i64{1} << 22)}));
}

TEST(Meter, CorrectionBytesPerCorrelation) {
  for (const auto& [k, bits] : std::map<int, i64>{{1, 127}, {2, 63}, {3, 42}, {4, 31}, {8, 15}}) {
    EXPECT_EQ(rcot_cost(test_config("softspoken", k)).message_bytes(0, 8192), bits * 8192 / 8);
  }
}

// A change of these values is a change of the protocol on the wire.
TEST(WireTrace, IsAFunctionOfTheTestSeeds) {
  const std::map<std::string, std::array<std::string, 2>> expected{
      {"ideal4",
       {"0146fb85e8c70ee516f543c9d9d3767c94a97314121af6ceea92e2fa35fefdac",
        "fecd24bedf2210067818c6df93c800c52362b45a9a1edae93bcf3a1a17ab2008"}},
      {"silent0",
       {"d3182ea64bbe62a0fb2550b5596de59d97c6dd49476e1577636a250df17ee838",
        "07e0e7c4bd5bfe21b49ba5a4a9c7ba774839ab4f6424c635f08f8baad3078ca5"}},
      {"softspoken1",
       {"25a27a9e8537aa2b5ef0e65ae70066feef8f6f162b10263862bcaa1d95aa49c5",
        "c18b96e807a51165e0e2ea582f7074fb814ccc7c53cf0de8415360e550a18150"}},
      {"softspoken2",
       {"d20f883d4c80f4bc33d3c802d1199a0b9eb03a2cfa64ad11f8260665a04216fb",
        "cf6198f0c0876cfeaf3d930c09683673e2d7a0a1eec1c46cdf860498c2311dd4"}},
      {"softspoken4",
       {"e68be369ab610a15f2a106fe604072579df301ad999ac3e67839dc11b9dcc58c",
        "9c020839a6d401b8c3e7750849f107d66e40335198bfd12e5261362ad83de8ca"}},
      {"softspoken8",
       {"a37ac09a68a4e5ab72840bc5de8e6906ae70bbd84df90ac0f38766698dbe8c8c",
        "7184469ecc59f618af9084f589a3ced1988ce85120b25a5271ab7e5d2c669086"}},
  };
  const Scenario everything = scenarios().back();
  for (const OtConfig& config : measured_providers()) {
    const std::string name = config.provider + std::to_string(config.k);
    EXPECT_EQ(run_session(config, everything.run).sent_hash, expected.at(name)) << name;
  }
}

}  // namespace
}  // namespace privml::testing
