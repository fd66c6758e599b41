// SPDX-License-Identifier: Apache-2.0
#include "twopc/session/open.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

const std::vector<int> kReceivers{kBothParties, 0, 1};

bool learns(int rank, int to) { return to == kBothParties || to == rank; }

TEST(Open, AllSharePairsToEachReceiver) {
  for (int bits : {1, 2, 5}) {
    for (int to : kReceivers) {
      Both<Words> shares = all_share_pairs(bits), out;
      const Both<Words> clean = shares;
      add_noise_above(shares, bits);
      for (int rank : {0, 1}) out[rank].resize(learns(rank, to) ? shares[0].size() : 0);
      run_parties({}, [&](ot::Party& p) { open_ring(p, shares[p.rank], bits, to, out[p.rank]); });
      for (int rank : {0, 1}) {
        for (std::size_t i = 0; i < out[rank].size(); ++i) {
          const i64 value = to_signed((clean[0][i] + clean[1][i]) & low_mask(bits), bits);
          ASSERT_EQ(static_cast<i64>(out[rank][i]), value);
        }
      }
    }
  }
}

TEST(Open, LongInputsOfAllWidths) {
  for (int bits : {32, 37, 63, 64}) {
    const Words values = random_words(kLargestN, bits);
    const Both<Words> shares = share(values, bits);
    Both<Words> out{Words(values.size()), Words(values.size())};
    run_parties(
        {}, [&](ot::Party& p) { open_ring(p, shares[p.rank], bits, kBothParties, out[p.rank]); });
    EXPECT_EQ(out[0], out[1]);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(static_cast<i64>(out[0][i]), to_signed(values[i], bits));
    }
  }
}

TEST(Open, Bits) {
  const Bits values = random_bits(1001);
  const Both<Bits> shares = share_bits(values);
  for (int to : kReceivers) {
    Both<Bits> out;
    for (int rank : {0, 1}) out[rank].resize(learns(rank, to) ? values.size() : 0);
    run_parties({}, [&](ot::Party& p) { open_bits(p, shares[p.rank], to, out[p.rank]); });
    for (int rank : {0, 1}) EXPECT_EQ(out[rank], learns(rank, to) ? values : Bits{});
  }
}

// What leaves is the share modulo 2^bits: the noise above it changes no byte on the wire.
TEST(Open, BitsAboveTheWidthNeverLeave) {
  const Both<Words> shares = share(random_words(333, 13), 13);
  Both<Words> noisy = shares;
  add_noise_above(noisy, 13);
  const auto wire = [](const Both<Words>& inputs) {
    const Outcome outcome = run_parties({}, [&](ot::Party& p) {
      Words out(p.rank == 1 ? 333 : 0);
      open_ring(p, inputs[p.rank], 13, 1, out);
    });
    return outcome.record.sent_hash;
  };
  EXPECT_EQ(wire(shares), wire(noisy));
}

TEST(Open, CostsEqualTheLedger) {
  expect_costs_equal([](i64 n) {
    std::vector<CostRow> rows;
    for (int to : kReceivers) {
      rows.push_back({[n, to](ot::Party& p) {
                        const Words x(n, 3);
                        Words out(learns(p.rank, to) ? n : 0);
                        open_ring(p, x, 37, to, out);
                      },
                      [n, to](ot::CostMeter& m) { cost_open_ring(m, n, 37, to); }});
      rows.push_back({[n, to](ot::Party& p) {
                        const Bits x(n, 1);
                        Bits out(learns(p.rank, to) ? n : 0);
                        open_bits(p, x, to, out);
                      },
                      [n, to](ot::CostMeter& m) { cost_open_bits(m, n, to); }});
    }
    return rows;
  });
}

TEST(Open, WrongArguments) {
  run_parties({}, [](ot::Party& p) {
    const Words x(3);
    Words out(3), none;
    EXPECT_THROW(open_ring(p, x, 0, kBothParties, out), InvalidArgument);
    EXPECT_THROW(open_ring(p, x, 65, kBothParties, out), InvalidArgument);
    EXPECT_THROW(open_ring(p, x, 8, 2, out), InvalidArgument);
    EXPECT_THROW(open_ring(p, x, 8, p.rank, none), InvalidArgument);
    EXPECT_THROW(open_ring(p, x, 8, 1 - p.rank, out), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::twopc
