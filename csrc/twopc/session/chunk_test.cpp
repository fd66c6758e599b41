// SPDX-License-Identifier: Apache-2.0
#include "twopc/session/chunk.h"

#include <gtest/gtest.h>

#include "twopc/compare/relu.h"
#include "twopc/product/matmul.h"
#include "twopc/product/multiplication.h"
#include "twopc/session/open.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

constexpr i64 kMany = 3 * kChunk + 5;
constexpr int kBits = 16;

struct Task {
  const char* name;
  std::function<void(ot::Party&, const Words&, Words&)> protocol;  // of shares
  std::function<void(ot::CostMeter&)> cost;
  std::function<u64(u64)> value;
};

std::vector<Task> tasks() {
  const MatrixShape shape{kMany, 1, 1};
  const Operand word{kShared, kBits, true};
  return {
      {"relu", [](ot::Party& p, const Words& x, Words& out) { relu(p, x, kBits, out); },
       [](ot::CostMeter& m) { cost_relu(m, kMany, kBits); },
       [](u64 x) { return to_signed(x, kBits) < 0 ? 0 : x; }},
      {"multiply",
       [](ot::Party& p, const Words& x, Words& out) {
         multiply(p, x, {kBits}, x, {kBits}, kBits, out);
       },
       [](ot::CostMeter& m) { cost_multiply(m, kMany, {kBits}, {kBits}, kBits); },
       [](u64 x) { return x * x; }},
      {"matmul",
       [=](ot::Party& p, const Words& x, Words& out) {
         matmul(p, word, x, word, Words{p.rank == 0 ? u64{7} : u64{0}}, shape, kBits, out);
       },
       [=](ot::CostMeter& m) { cost_matmul(m, word, word, shape, kBits); },
       [](u64 x) { return x * 7; }},
  };
}

// Costs equal the ledger at each factor, and a factor that holds all in one chunk takes one chunk's
// messages.
TEST(Chunks, LongerOnesTakeFewerMessages) {
  const Words values = random_words(kMany, kBits);
  const Both<Words> shares = share(values, kBits);
  for (const Task& task : tasks()) {
    std::array<i64, 2> depth{};
    for (const i64 factor : {1, 4}) {
      SCOPED_TRACE(::testing::Message() << task.name << ", factor " << factor);
      Both<Words> out{Words(kMany), Words(kMany)};
      const Outcome outcome = run_parties({}, [&](ot::Party& party) {
        party.chunk_factor = factor;
        task.protocol(party, shares[party.rank], out[party.rank]);
      });
      expect_cost_equals(outcome, [&](ot::CostMeter& meter) {
        meter.chunk_factor = factor;
        task.cost(meter);
      });
      depth[factor == 4] = outcome.record.traffic[0].depth;
      for (i64 i = 0; i < kMany; ++i) {
        ASSERT_EQ((out[0][i] + out[1][i]) & low_mask(kBits),
                  task.value(values[i]) & low_mask(kBits));
      }
    }
    EXPECT_LE(2 * depth[1], depth[0]) << task.name;
  }
}

TEST(Chunks, OpeningTakesOneMessageAtAnyLength) {
  const Both<Words> shares = share(random_words(kMany, kBits), kBits);
  const Outcome outcome = run_parties({}, [&](ot::Party& party) {
    Words out(kMany);
    open_ring(party, shares[party.rank], kBits, kBothParties, out);
  });
  EXPECT_EQ(outcome.record.traffic[0].depth, 1);
  expect_cost_equals(
      outcome, [](ot::CostMeter& meter) { cost_open_ring(meter, kMany, kBits, kBothParties); });
}

}  // namespace
}  // namespace privml::twopc
