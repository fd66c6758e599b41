// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/last_bit.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

Both<Words> dropped(int bits, const Both<Words>& high, const Both<std::vector<u8>>& last,
                    const OtKind& ot = {}) {
  Both<Words> out{Words(high[0].size()), Words(high[0].size())};
  run_parties(ot, [&](ot::Party& party) {
    const int r = party.rank;
    drop_last_bit(party, high[r], last[r], bits, out[r]);
  });
  return out;
}

TEST(DropLastBit, AllSharesOfSmallRings) {
  for (int bits = 1; bits <= 4; ++bits) {
    Both<Words> high;
    Both<std::vector<u8>> last;
    Words expected;
    const u64 size = u64{2} << bits;
    for (u64 a = 0; a < size; ++a)
      for (u64 b = 0; b < size; ++b) {
        high[0].push_back(a >> 1);
        high[1].push_back(b >> 1);
        last[0].push_back(static_cast<u8>(a & 1));
        last[1].push_back(static_cast<u8>(b & 1));
        expected.push_back((a + b) % size >> 1);
      }
    EXPECT_EQ(reconstruct(dropped(bits, high, last), bits), expected);
    EXPECT_EQ(reconstruct(dropped(bits, high, last, {false, 4}), bits), expected);
  }
}

TEST(DropLastBit, EveryWidth) {
  for (int bits = 1; bits <= 64; ++bits) {
    const Words values = random_words(64, bits, 1), mask = random_words(64, bits, 2);
    Both<Words> high{mask, Words(64)};
    Both<std::vector<u8>> last{std::vector<u8>(64), std::vector<u8>(64)};
    for (size_t i = 0; i < 64; ++i) {
      // 2 values + (i is odd), less 2 mask + 1.
      high[1][i] = values[i] - mask[i] - static_cast<u64>(i % 2 == 0);
      last[0][i] = 1;
      last[1][i] = static_cast<u8>(i % 2 == 0);
      if (i % 2 == 1) high[1][i] = values[i] - mask[i];
    }
    EXPECT_EQ(reconstruct(dropped(bits, high, last), bits), values) << bits;
  }
}

TEST(DropLastBit, CostsEqualTheLedger) {
  expect_costs_equal([](i64 n) {
    std::vector<CostRow> rows;
    for (const int bits : {1, 32, 64})
      rows.push_back({[n, bits](ot::Party& party) {
                        const Words high(n, 3);
                        const std::vector<u8> last(n, 1);
                        Words out(n);
                        drop_last_bit(party, high, last, bits, out);
                      },
                      [n, bits](ot::CostMeter& meter) { cost_drop_last_bit(meter, n, bits); }});
    return rows;
  });
}

TEST(DropLastBit, RefusesWhatDoesNotFit) {
  run_parties({}, [](ot::Party& party) {
    const Words high(2);
    const std::vector<u8> last(2), longer(3);
    Words out(2);
    EXPECT_THROW(drop_last_bit(party, high, longer, 8, out), InvalidArgument);
    EXPECT_THROW(drop_last_bit(party, high, last, 65, out), InvalidArgument);
    EXPECT_THROW(drop_last_bit(party, high, last, 0, out), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::twopc
