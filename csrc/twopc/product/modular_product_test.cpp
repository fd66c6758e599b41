// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/modular_product.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "twopc/product/private_product.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

Both<Words> products(const Both<Bits>& bits, u64 prime, const OtKind& kind = {}) {
  Both<Words> out{Words(bits[0].size()), Words(bits[0].size())};
  run_parties(kind, [&](ot::Party& party) {
    ModularProduct state;
    write_modular_product(party, bits[party.rank], prime, state);
    read_modular_product(party, state, out[party.rank]);
  });
  return out;
}

TEST(ModularProduct, SharesAddUpToTheProductAndAreBelowThePrime) {
  for (const u64 prime : {u64{3}, u64{65537}, u64{137438822401}, u64{281474976694273}})
    for (const bool ideal : {true, false}) {
      const Both<Bits> bits{random_bits(3001), random_bits(3001)};
      const Both<Words> out = products(bits, prime, {ideal, 4});
      for (size_t i = 0; i < bits[0].size(); ++i) {
        ASSERT_LT(out[0][i], prime);
        ASSERT_LT(out[1][i], prime);
        ASSERT_EQ((out[0][i] + out[1][i]) % prime, static_cast<u64>(bits[0][i] & bits[1][i])) << i;
      }
    }
}

TEST(ModularProduct, SharesOfOneProductAreSpreadOverAllResidues) {
  const Both<Bits> bits{Bits(30000, 1), Bits(30000, 1)};
  const Both<Words> out = products(bits, 3);
  for (const int rank : {0, 1}) {
    std::array<int, 3> counts{};
    for (const u64 share : out[rank]) ++counts[share];
    for (const int count : counts) EXPECT_NEAR(count, 10000, 600);
  }
}

TEST(ModularProduct, CostsEqualTheLedger) {
  expect_costs_equal([](i64 n) {
    return std::vector<CostRow>{{[=](ot::Party& p) {
                                   ModularProduct state;
                                   Words out(n);
                                   write_modular_product(p, random_bits(n), 65537, state);
                                   read_modular_product(p, state, out);
                                 },
                                 [=](ot::CostMeter& m) {
                                   cost_draw_private_product(m, n);
                                   cost_flight(m, modular_product_flight(n, 65537));
                                 }}};
  });
}

TEST(ModularProduct, RefusesWrongArguments) {
  run_parties({}, [](ot::Party& party) {
    ModularProduct state;
    EXPECT_THROW(write_modular_product(party, Bits(3), u64{1} << 48, state), InvalidArgument);
    EXPECT_THROW(write_modular_product(party, Bits(3), 2, state), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::twopc
