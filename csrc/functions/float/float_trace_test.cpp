// SPDX-License-Identifier: Apache-2.0
// Pins what the floating-point primitives send on fixed seeds: a refactoring leaves these hashes
// alone, a change of a protocol shows here.
#include "functions/float/addition.h"
#include "functions/float/conversion.h"
#include "functions/float/division.h"
#include "functions/float/multiplication.h"
#include "functions/float/testing/functions.h"

namespace privml::floating {
namespace {

using namespace floating::testing;
using namespace twopc::testing;

constexpr i64 kCount = 100;

using Run = std::function<void(ot::Party&, const FloatVector&, const FloatVector&, FloatVector&)>;

// The first four bytes each of the SHA-256 of what party 0 and party 1 sent, in hexadecimal.
std::string trace(const Run& run) {
  const Pairs pairs = random_pairs(kCount, kFloat32);
  const Both<FloatVector> a = share_floats(pairs.a, kFloat32, 3);
  const Both<FloatVector> b = share_floats(pairs.b, kFloat32, 4);
  const Outcome outcome = run_parties({true, 0}, [&](ot::Party& party) {
    FloatVector out(kCount);
    run(party, a[party.rank], b[party.rank], out);
  });
  const auto& hashes = outcome.record.sent_hash;
  return hashes[0].substr(0, 8) + hashes[1].substr(0, 8);
}

std::string binary(const FloatBinary& operation) {
  return trace([&](ot::Party& party, const FloatVector& a, const FloatVector& b, FloatVector& out) {
    operation.run(party, a, b, out);
  });
}

std::string relation(const FloatRelation& operation) {
  return trace([&](ot::Party& party, const FloatVector& a, const FloatVector& b, FloatVector&) {
    Bits out(kCount);
    operation.run(party, a, b, out);
  });
}

std::string unary(const FloatUnary& operation) {
  return trace([&](ot::Party& party, const FloatVector& a, const FloatVector&, FloatVector& out) {
    operation.run(party, a, out);
  });
}

TEST(FloatWireTrace, Arithmetic) {
  EXPECT_EQ(binary(float_add(kFloat32)), "922ddf2d9cd765f0");
  EXPECT_EQ(binary(float_multiply(kFloat32)), "e88eb6e63ce04983");
  EXPECT_EQ(binary(float_divide(kFloat32)), "f18db10b423d78e4");
  EXPECT_EQ(unary(float_sqrt(kFloat32)), "f45f355edd6285b3");
}

TEST(FloatWireTrace, Order) {
  EXPECT_EQ(relation(float_less_than(kFloat32)), "6ee283d5569b97b2");
  EXPECT_EQ(relation(float_equal(kFloat32)), "39309d7649e3e330");
  EXPECT_EQ(binary(float_maximum(kFloat32)), "ab718f72b6da1299");
  EXPECT_EQ(unary(float_relu(kFloat32)), "f1d165d5398ebab3");
}

TEST(FloatWireTrace, Conversions) {
  EXPECT_EQ(unary(float_round_to_integer(kFloat32)), "a513626dd697aae2");
  EXPECT_EQ(unary(float_cast(kFloat32, {5, 10})), "2cfe9cb97388d508");
  EXPECT_EQ(trace([](ot::Party& party, const FloatVector& a, const FloatVector&, FloatVector&) {
              Words out(kCount);
              float_to_fixed(kFloat32, 32, 12).run(party, a, out);
            }),
            "ee1adea9458c8afb");
  EXPECT_EQ(trace([](ot::Party& party, const FloatVector& a, const FloatVector&, FloatVector& out) {
              float_from_fixed(24, 12, kFloat32).run(party, a.mantissa, out);
            }),
            "8160a87ebeb529ae");
}

}  // namespace
}  // namespace privml::floating
