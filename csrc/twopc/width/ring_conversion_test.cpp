// SPDX-License-Identifier: Apache-2.0
#include "twopc/width/ring_conversion.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/testing/parties.h"

namespace privml {
namespace {

using namespace privml::testing;

void check(const OtKind& kind, const Both<Words>& x, int from, int bits, int width) {
  SCOPED_TRACE(::testing::Message() << from << " -> " << bits << " bits");
  Both<Words> wraps{Words(x[0].size()), Words(x[0].size())};
  run_parties(kind,
              [&](Party& p) { converted_wrap(p, x[p.rank], from, bits, width, wraps[p.rank]); });
  const Words result = reconstruct(wraps, width);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const u64 sum = (x[0][i] & low_mask(bits)) + (x[1][i] & low_mask(bits));
    const i64 number = to_signed((x[0][i] + x[1][i]) & low_mask(from), from);
    const u64 wrap = static_cast<u64>(static_cast<i64>(sum) - number) >> bits;
    ASSERT_EQ(result[i], wrap & low_mask(width)) << x[0][i] << " + " << x[1][i];
  }
}

TEST(RingConversion, EveryPairOfSharesOfTheLargerRing) {
  for (int bits = 1; bits <= 6; ++bits) {
    for (int from = bits + 1; from <= 8; ++from) {
      const Both<Words> pairs = all_share_pairs(from);
      Both<Words> x;
      for (std::size_t i = 0; i < pairs[0].size(); ++i) {
        const i64 number = to_signed((pairs[0][i] + pairs[1][i]) & low_mask(from), from);
        if (number < -(i64{1} << (bits - 1)) || number >= i64{1} << (bits - 1)) continue;
        for (int r : {0, 1}) x[r].push_back(pairs[r][i]);
      }
      add_noise_above(x, from);
      check({}, x, from, bits, 2);
    }
  }
}

TEST(RingConversion, RandomNumbersAtRealWidths) {
  for (const auto& [from, bits] : {std::pair{37, 15}, {32, 31}, {62, 40}}) {
    Words values = random_words(2000, bits, 3);
    for (u64& v : values) v = static_cast<u64>(to_signed(v, bits)) & low_mask(from);
    check({false, 4}, share(values, from), from, bits, 20);
  }
}

TEST(RingConversion, CostsEqualTheLedger) {
  expect_costs_equal([](i64 n) {
    return std::vector<CostRow>{{[=](Party& p) {
                                   Words out(n);
                                   converted_wrap(p, Words(n, 5), 37, 15, 2, out);
                                 },
                                 [=](CostMeter& m) { cost_converted_wrap(m, n, 2); }}};
  });
}

TEST(RingConversion, RefusesWrongArguments) {
  run_parties({}, [](Party& p) {
    Words x(3), out(3), longer(4);
    EXPECT_THROW(converted_wrap(p, x, 8, 8, 2, out), InvalidArgument);
    EXPECT_THROW(converted_wrap(p, x, 8, 4, 65, out), InvalidArgument);
    EXPECT_THROW(converted_wrap(p, x, 8, 4, 2, longer), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml
