// SPDX-License-Identifier: Apache-2.0
// Pins what the floating-point primitives send on fixed seeds: a refactoring leaves these hashes
// alone, a change of a protocol shows here.
#include "functions/float/addition.h"
#include "functions/float/conversion.h"
#include "functions/float/division.h"
#include "functions/float/multiplication.h"
#include "functions/float/testing/functions.h"

namespace privml {
namespace {

using namespace testing;

constexpr i64 kCount = 100;

using Run = std::function<void(Party&, const FloatVector&, const FloatVector&, FloatVector&)>;

// The first four bytes each of the SHA-256 of what party 0 and party 1 sent, in hexadecimal.
std::string trace(const Run& run) {
  const Pairs pairs = random_pairs(kCount, kFloat32);
  const Both<FloatVector> a = share_floats(pairs.a, kFloat32, 3);
  const Both<FloatVector> b = share_floats(pairs.b, kFloat32, 4);
  const Outcome outcome = run_parties({true, 0}, [&](Party& party) {
    FloatVector out(kCount);
    run(party, a[party.rank], b[party.rank], out);
  });
  const auto& hashes = outcome.record.sent_hash;
  return hashes[0].substr(0, 8) + hashes[1].substr(0, 8);
}

std::string binary(void (*protocol)(Party&, FloatView, FloatView, FloatFormat, FloatSpan)) {
  return trace([&](Party& party, const FloatVector& a, const FloatVector& b, FloatVector& out) {
    protocol(party, a, b, kFloat32, out);
  });
}

std::string relation(void (*protocol)(Party&, FloatView, FloatView, FloatFormat, std::span<u8>)) {
  return trace([&](Party& party, const FloatVector& a, const FloatVector& b, FloatVector&) {
    Bits out(kCount);
    protocol(party, a, b, kFloat32, out);
  });
}

std::string unary(void (*protocol)(Party&, FloatView, FloatFormat, FloatSpan)) {
  return trace([&](Party& party, const FloatVector& a, const FloatVector&, FloatVector& out) {
    protocol(party, a, kFloat32, out);
  });
}

TEST(FloatWireTrace, Arithmetic) {
  EXPECT_EQ(binary(float_add), "19e52dae34a3487c");
  EXPECT_EQ(binary(float_cheap_add), "cb722e68dc011cb1");
  EXPECT_EQ(binary(float_multiply), "c2bd97a46c162d26");
  EXPECT_EQ(binary(float_divide), "939f28116b654a96");
  EXPECT_EQ(unary(float_sqrt), "57d2ba2a370770ad");
}

TEST(FloatWireTrace, Order) {
  EXPECT_EQ(relation(float_less_than), "600771a1368c9bcb");
  EXPECT_EQ(relation(float_equal), "233939b5d37a802a");
  EXPECT_EQ(binary(float_maximum), "06c2b132193f5f34");
  EXPECT_EQ(unary(float_relu), "f1d165d5398ebab3");
}

TEST(FloatWireTrace, Conversions) {
  EXPECT_EQ(unary(float_round_to_integer), "d49fdb0a5673fca2");
  EXPECT_EQ(trace([](Party& party, const FloatVector& a, const FloatVector&, FloatVector& out) {
              float_cast(party, a, kFloat32, {5, 10}, out);
            }),
            "75b8094437fb706b");
  EXPECT_EQ(trace([](Party& party, const FloatVector& a, const FloatVector&, FloatVector&) {
              Words out(kCount);
              float_to_fixed(party, a, kFloat32, 32, 12, out);
            }),
            "276e87a74ced3c7d");
  EXPECT_EQ(trace([](Party& party, const FloatVector& a, const FloatVector&, FloatVector& out) {
              float_from_fixed(party, a.mantissa, 24, 12, kFloat32, out);
            }),
            "088a62acd2929a49");
}

}  // namespace
}  // namespace privml
