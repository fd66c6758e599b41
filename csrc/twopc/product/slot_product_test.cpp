// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/slot_product.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "twopc/session/chunk.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

// All steps, with factors[i] at the chooser and values[i] at the other party.
Words run(ot::Party& party, const SlotShape& shape, const Words& factors, const Words& values) {
  const i64 n = std::ssize(factors);
  const Halves part = halves(party.rank, n);
  const auto cots = ot::count_correlations(
      party, [&](ot::CostMeter& meter) { cost_slot_products(meter, shape, n); });
  ot::reserve(party, cots[party.rank], cots[1 - party.rank]);
  SlotProducts products(party, shape, n);
  Words out(n);
  products.write_factors(std::span(factors).subspan(part.receive_begin, part.receive_count));
  products.write_answers(std::span(values).subspan(part.send_begin, part.send_count));
  products.write_carries();
  products.write_wraps();
  products.read(out);
  return out;
}

Words products(const SlotShape& shape, const Words& factors, const Words& values,
               const OtKind& kind = {}) {
  Both<Words> out;
  run_parties(kind, [&](ot::Party& p) { out[p.rank] = run(p, shape, factors, values); });
  return reconstruct(out, shape.out_bits());
}

Words below(i64 n, int bits) {
  Words out = random_words(n, bits);
  const Words edges{0, 1, low_mask(bits), low_mask(bits) - 1, u64{1} << (bits - 1)};
  for (i64 i = 0; i < n; i += 3) out[i] = edges[i % 5];
  return out;
}

TEST(SlotProducts, ExactIfNothingIsDropped) {
  for (const SlotShape& shape :
       {SlotShape{1, 1, 20}, SlotShape{17, 18, 35}, SlotShape{20, 15, 64}, SlotShape{30, 15, 45},
        SlotShape{32, 32, 64}, SlotShape{44, 46, 64}, SlotShape{46, 46, 64},
        SlotShape{60, 30, 64}}) {
    const i64 n = 9001;
    const Words factors = below(n, shape.factor_bits), values = below(n, shape.value_bits);
    const Words out = products(shape, factors, values);
    for (i64 i = 0; i < n; ++i)
      ASSERT_EQ(out[i], (factors[i] * values[i]) & low_mask(shape.ring_bits)) << i;
  }
}

TEST(SlotProducts, DroppedBitsStayBelowTheirBound) {
  for (const SlotShape& shape : {SlotShape{40, 44, 90, 40}, SlotShape{33, 35, 70, 30},
                                 SlotShape{20, 20, 42, 1}, SlotShape{46, 46, 94, 60}}) {
    const i64 n = 20000;
    const Words factors = below(n, shape.factor_bits), values = below(n, shape.value_bits);
    const Words out = products(shape, factors, values, {false, 4});
    double largest = 0;
    for (i64 i = 0; i < n; ++i) {
      const u128 exact = u128{factors[i]} * values[i];
      const u64 rounded = static_cast<u64>(exact >> shape.dropped);
      const double above = std::ldexp(
          static_cast<double>(static_cast<u64>(exact & low_mask(shape.dropped))), -shape.dropped);
      const i64 off = to_signed((out[i] - rounded) & low_mask(shape.out_bits()), shape.out_bits());
      largest = std::max(largest, std::abs(static_cast<double>(off) - above));
    }
    EXPECT_LE(largest, kSlotError);
    EXPECT_GT(largest, kSlotError / 4);
  }
}

// What a session keeps: calls of several shapes after one another, also of one instance.
TEST(SlotProducts, CostsEqualTheLedger) {
  expect_costs_equal([](i64 n) {
    std::vector<CostRow> rows;
    for (const SlotShape& shape : {SlotShape{17, 18, 60, 20}, SlotShape{40, 44, 90, 40}})
      rows.push_back(
          {[=](ot::Party& p) {
             in_chunks(
                 p, n, [&](ot::CostMeter& m, i64 count) { cost_slot_products(m, shape, count); },
                 [&](i64, i64 count) { run(p, shape, Words(count), Words(count)); });
           },
           [=](ot::CostMeter& meter) {
             cost_in_chunks(meter, n, [&](ot::CostMeter& m, i64 count) {
               const SlotFlights f = cost_slot_products(m, shape, count);
               for (const Flight& flight : {f.factors, f.answers, f.carries, f.wraps})
                 cost_flight(m, flight);
             });
           }});
    return rows;
  });
}

TEST(SlotProducts, PlansTakeTheFewestBytesAndNoneIfNumbersAreTooLong) {
  EXPECT_EQ(plan_slots({17, 18, 35}, 100)->set, 0);
  EXPECT_EQ(plan_slots({17, 18, 35}, 100)->primes, 1);
  EXPECT_EQ(plan_slots({22, 22, 44}, 1 << 16)->primes, 1);
  EXPECT_EQ(plan_slots({36, 36, 72}, 1 << 16)->set, 0);
  EXPECT_EQ(plan_slots({46, 46, 64}, 1 << 16)->set, 1);
  EXPECT_FALSE(plan_slots({46, 47, 64}, 1 << 16));
  run_parties({}, [](ot::Party& party) {
    EXPECT_THROW(SlotProducts(party, {46, 47, 64}, 5), InvalidArgument);
    EXPECT_THROW(SlotProducts(party, {20, 20, 70, 5}, 5), InvalidArgument);
  });
}

}  // namespace
}  // namespace privml::twopc
