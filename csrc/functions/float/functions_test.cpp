// SPDX-License-Identifier: Apache-2.0
// The secure functions of floating-point numbers beside their clear twins, and their costs.
#include "functions/float/testing/functions.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "functions/float/exponential.h"
#include "functions/float/gelu.h"
#include "functions/float/logarithm.h"
#include "functions/float/operation.h"
#include "functions/float/root.h"
#include "functions/float/saturating.h"
#include "functions/float/sigmoid.h"
#include "functions/float/sine.h"
#include "functions/float/tangent.h"

namespace privml::floating {
namespace {

using namespace floating::testing;
using namespace twopc::testing;

struct FloatFunction {
  FunctionSteps steps;
  FloatValue (*twin)(FloatValue);
};

constexpr FloatFunction kSinPi{sin_pi_of, clear_float_sin_pi};
constexpr FloatFunction kCosPi{cos_pi_of, clear_float_cos_pi};
constexpr FloatFunction kTanPi{tan_pi_of, clear_float_tan_pi};
constexpr FloatFunction kExp2{exp2_of, clear_float_exp2};
constexpr FloatFunction kExp{exp_of, clear_float_exp};
constexpr FloatFunction kLog2{log2_of, clear_float_log2};
constexpr FloatFunction kLog{log_of, clear_float_log};
constexpr FloatFunction kRsqrt{rsqrt_of, clear_float_rsqrt};
constexpr FloatFunction kSigmoid{sigmoid_of, clear_float_sigmoid};
constexpr FloatFunction kTanhOf{tanh_of, clear_float_tanh};
constexpr FloatFunction kErfOf{erf_of, clear_float_erf};
constexpr FloatFunction kGeluOf{gelu_of, clear_float_gelu};

Values values_of(const std::vector<u32>& bits) {
  Values values;
  for (u32 b : bits) values.push_back(value_from_single_bits(b));
  return values;
}

// Every exponent with both signs, the ends and the leading bits of the mantissa, and random ones.
Values stratified(int random_count, u64 seed = 1) {
  std::vector<u32> bits;
  for (u32 e = 0; e < 256; ++e)
    for (u32 m : {0U, 1U, 0x400000U, 0x7fffffU})
      for (u32 s : {0U, 1U})
        if (e < 255 || m == 0) bits.push_back(s << 31 | e << 23 | (e == 0 ? 0 : m));
  std::mt19937_64 random(seed);
  for (int i = 0; i < random_count; ++i) {
    const u32 e = i % 4 == 0 ? 1 + random() % 254 : 100 + random() % 40;
    bits.push_back(static_cast<u32>(random() & 0x80000000) | e << 23 |
                   static_cast<u32>(random() & 0x7fffff));
  }
  return values_of(bits);
}

void expect_equals_twin(const FloatFunction& function, const Values& values,
                        const OtKind& ot = {}) {
  const Values got =
      reconstruct_floats(results_of(float32_function(function.steps), std::ssize(values), ot,
                                    share_floats(values, kFloat32)),
                         kFloat32);
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], function.twin(values[i])) << std::hex << single_bits_from_value(values[i]);
}

// Places in every cell of every table: sines, tangents and exponentials see the fractions of x,
// logarithms the mantissas, the reciprocal in 1 / tan the mantissa of 1/2 - x.
Values every_cell() {
  std::vector<u32> bits;
  const auto add = [&](double x) {
    bits.push_back(std::bit_cast<u32>(static_cast<float>(x)));
    bits.push_back(std::bit_cast<u32>(static_cast<float>(-x)));
  };
  for (int cell = 0; cell < 512; ++cell)
    for (const double t : {0.0, 0.4, 0.9999}) {
      const double x = (cell + t) / 512;
      for (const double place : {x, 1 + x, 0.5 + x / 2, 3 + x}) add(place);
      add(0.5 - (1 + x) / 8);
    }
  return values_of(bits);
}

struct Bound {
  double half_kibibytes;  // of what SecFloat publishes, tables II and III
  i64 depth;
};

// Both parties' bytes per element with SoftSpoken, and the depth of one chunk.
void expect_within(const FloatFunction& function, Bound bound) {
  constexpr i64 kElements = 10000;
  ot::CostMeter meter(ot::rcot_cost(OtKind{false, 4}.config()));
  float32_function(function.steps).cost(meter, kElements);
  EXPECT_LE(static_cast<double>(meter.bytes[0] + meter.bytes[1]) / kElements / 1024,
            bound.half_kibibytes);
  EXPECT_LE(std::max(meter.depth[0], meter.depth[1]), bound.depth);
}

void expect_right(const FloatFunction& function) {
  expect_equals_twin(function, stratified(3000));
  expect_equals_twin(function, every_cell());
  expect_equals_twin(function, stratified(100, 2), {false, 4});
}

TEST(FloatFunctions, SinPi) {
  expect_right(kSinPi);
  expect_within(kSinPi, {42.36 / 2, 196});
}

TEST(FloatFunctions, CosPi) {
  expect_right(kCosPi);
  expect_within(kCosPi, {42.41 / 2, 196});
}

TEST(FloatFunctions, TanPi) {
  expect_right(kTanPi);
  expect_within(kTanPi, {60.38 / 2, 268});
}

TEST(FloatFunctions, Exp2) {
  expect_right(kExp2);
  expect_within(kExp2, {37.23 / 2, 187});
}

TEST(FloatFunctions, Exp) { expect_right(kExp); }

TEST(FloatFunctions, Log2) {
  expect_right(kLog2);
  expect_within(kLog2, {51.48 / 2, 256});
}

TEST(FloatFunctions, Log) { expect_right(kLog); }

TEST(FloatFunctions, Rsqrt) { expect_right(kRsqrt); }

TEST(FloatFunctions, Sigmoid) {
  expect_right(kSigmoid);
  Values values;
  for (int i = -1024; i < 1024; ++i)
    values.push_back(value_from_single_bits(std::bit_cast<u32>(static_cast<float>(i) / 8)));
  expect_equals_twin(kSigmoid, values);
}

TEST(FloatFunctions, Gelu) {
  expect_right(kGeluOf);
  Values values;
  for (int i = -1024; i < 1024; ++i)
    values.push_back(value_from_single_bits(std::bit_cast<u32>(static_cast<float>(i) / 64)));
  expect_equals_twin(kGeluOf, values);
}

// All cells: the binades of [2^-14, 2^6), 32 places in each.
TEST(FloatFunctions, TanhAndErf) {
  Values values;
  for (u32 e = 113; e < 133; ++e)
    for (u32 cell = 0; cell < 32; ++cell)
      for (u32 m : {cell << 18, (cell << 18) + 0x3ffff})
        values.push_back(value_from_single_bits((cell & 1) << 31 | e << 23 | m));
  for (const FloatFunction& function : {kTanhOf, kErfOf}) {
    expect_right(function);
    expect_equals_twin(function, values);
  }
}

TEST(FloatFunctions, LengthsAroundAChunk) {
  for (const i64 n : {i64{0}, i64{1}, kFloatChunk + 1}) {
    Values values = stratified(static_cast<int>(kFloatChunk));
    values.resize(n);
    expect_equals_twin(kExp2, values);
  }
}

TEST(FloatFunctions, RefuseLengthsThatDiffer) {
  run_parties({}, [](ot::Party& party) {
    FloatVector one(1), two(2);
    EXPECT_THROW(float32_function(exp2_of).run(party, one, two), InvalidArgument);
  });
}

// What the protocols send on fixed seeds: the first four bytes each of the SHA-256 of both parties'
// messages.
TEST(FloatFunctions, WireTraces) {
  const Values values = random_pairs(100, kFloat32).a;
  const Both<FloatVector> shares = share_floats(values, kFloat32, 3);
  const auto trace = [&](const FloatFunction& function) {
    const Outcome outcome = run_parties({true, 0}, [&](ot::Party& party) {
      FloatVector out(std::ssize(values));
      float32_function(function.steps).run(party, shares[party.rank], out);
    });
    const auto& hashes = outcome.record.sent_hash;
    return hashes[0].substr(0, 8) + hashes[1].substr(0, 8);
  };
  EXPECT_EQ(trace(kSinPi), "f55183f1cbf8d619");
  EXPECT_EQ(trace(kCosPi), "a17463e85d2b0689");
  EXPECT_EQ(trace(kTanPi), "e0962d4163580166");
  EXPECT_EQ(trace(kExp2), "26d819ab0f1b9071");
  EXPECT_EQ(trace(kExp), "7a0330496f164351");
  EXPECT_EQ(trace(kLog2), "f21b0c8bdb010226");
  EXPECT_EQ(trace(kLog), "9e509a34ce3cf5a7");
  EXPECT_EQ(trace(kRsqrt), "a64a7c997c52bd22");
  EXPECT_EQ(trace(kSigmoid), "ab79e26f0215dd84");
  EXPECT_EQ(trace(kTanhOf), "96f8cfbba522ad80");
  EXPECT_EQ(trace(kErfOf), "2c2f964c34d8714f");
  EXPECT_EQ(trace(kGeluOf), "10cd9ffd9928f313");
}

double value_at(FloatValue (*twin)(FloatValue), double x) {
  const u32 bits = std::bit_cast<u32>(static_cast<float>(x));
  return double_from_value(twin(value_from_single_bits(bits)), kFloat32);
}

// What needs no rounding comes out exactly.
TEST(FloatFunctions, ExactValues) {
  EXPECT_EQ(value_at(clear_float_cos_pi, 0), 1);
  EXPECT_EQ(value_at(clear_float_cos_pi, 1e-9), 1);
  EXPECT_EQ(value_at(clear_float_cos_pi, 8388609), -1);
  EXPECT_EQ(value_at(clear_float_cos_pi, 0.5), 0);
  EXPECT_EQ(value_at(clear_float_sin_pi, 0.5), 1);
  EXPECT_EQ(value_at(clear_float_sin_pi, -1.5), 1);
  EXPECT_EQ(value_at(clear_float_sin_pi, 16777218), 0);
  EXPECT_EQ(value_at(clear_float_tan_pi, 0.25), 1);
  EXPECT_EQ(value_at(clear_float_tan_pi, 0.75), -1);
  EXPECT_EQ(std::fabs(value_at(clear_float_tan_pi, 0.5)), std::ldexp(1, 128));
  EXPECT_EQ(value_at(clear_float_exp2, 0), 1);
  EXPECT_EQ(value_at(clear_float_exp2, -126), std::ldexp(1, -126));
  EXPECT_EQ(value_at(clear_float_exp2, -127), 0);
  EXPECT_EQ(value_at(clear_float_exp2, 128), std::ldexp(1, 128));
  EXPECT_EQ(value_at(clear_float_exp, 0), 1);
  EXPECT_EQ(value_at(clear_float_exp, -1e30), 0);
  EXPECT_EQ(value_at(clear_float_exp, 1e30), std::ldexp(1, 128));
  EXPECT_EQ(value_at(clear_float_log, 1), 0);
  EXPECT_EQ(value_at(clear_float_rsqrt, 0.25), 2);
  EXPECT_EQ(value_at(clear_float_rsqrt, 0), std::ldexp(1, 128));
  EXPECT_EQ(value_at(clear_float_sigmoid, 0), 0.5);
  EXPECT_EQ(value_at(clear_float_sigmoid, 200), 1);
  EXPECT_EQ(value_at(clear_float_sigmoid, -200), 0);
  EXPECT_EQ(value_at(clear_float_tanh, 0), 0);
  EXPECT_EQ(value_at(clear_float_tanh, -30), -1);
  EXPECT_EQ(value_at(clear_float_tanh, 1e-6), static_cast<float>(1e-6));
  EXPECT_EQ(value_at(clear_float_erf, 1e30), 1);
  EXPECT_EQ(value_at(clear_float_gelu, 0), 0);
  EXPECT_EQ(value_at(clear_float_gelu, 1e30), static_cast<float>(1e30));
  EXPECT_EQ(value_at(clear_float_gelu, -1e30), 0);
  for (int n = -126; n < 128; ++n) EXPECT_EQ(value_at(clear_float_log2, std::ldexp(1, n)), n);
  EXPECT_EQ(value_at(clear_float_log2, 0), -std::ldexp(1, 128));
}

// Inputs at which the circuits of ABY are wrong by millions of units (SecFloat, table V), the last
// places of their results included.
TEST(FloatFunctions, InputsThatOtherCircuitsFail) {
  const auto bits_at = [](FloatValue (*twin)(FloatValue), u32 bits) {
    return single_bits_from_value(twin(value_from_single_bits(bits)));
  };
  const auto nearest = [](double x) { return std::bit_cast<u32>(static_cast<float>(x)); };
  EXPECT_EQ(bits_at(clear_float_sin_pi, 0x33a2f983),
            nearest(std::sin(M_PI * std::bit_cast<float>(0x33a2f983U))));
  EXPECT_EQ(bits_at(clear_float_cos_pi, 0x3effffff),
            nearest(std::sin(M_PI * (0.5 - std::bit_cast<float>(0x3effffffU)))));
  EXPECT_EQ(bits_at(clear_float_tan_pi, 0x32a2f983),
            nearest(std::tan(M_PI * std::bit_cast<float>(0x32a2f983U))));
  EXPECT_EQ(bits_at(clear_float_log2, 0x3f7fffff),
            nearest(std::log2(std::bit_cast<float>(0x3f7fffffU))));
}

// FNV-1a over the coefficients: what pins the generated tables.
u64 checksum(std::span<const std::int32_t> table) {
  u64 hash = 0xcbf29ce484222325;
  for (std::int32_t c : table) hash = (hash ^ static_cast<u32>(c)) * 0x100000001b3;
  return hash;
}

TEST(FloatFunctions, TablesAreThoseOfTheScript) {
  EXPECT_EQ(checksum(kSineTable), 0x939dae9a643710e4U);
  EXPECT_EQ(checksum(kTangentTable), 0xb17e874f484260d0U);
  EXPECT_EQ(checksum(kReciprocalTable), 0x2eec7d141e48379U);
  EXPECT_EQ(checksum(kExponentialOfTwoTable), 0x7e1a01fa47d9bbf3U);
  EXPECT_EQ(checksum(kExponentialTable), 0x2e92f0a3db5f8f2eU);
  EXPECT_EQ(checksum(kLogarithmOfTwoTable), 0xaf5ea11fac36cc66U);
  EXPECT_EQ(checksum(kInverseRootTable), 0x476f274fbbe05537U);
  EXPECT_EQ(checksum(kTanhTable), 0xdcd9ee316e63abf7U);
  EXPECT_EQ(checksum(kGeluTable), 0x5b94b6f6c50292c5U);
  EXPECT_EQ(checksum(kErfTable), 0xa776400c9504d04fU);
  EXPECT_EQ(checksum(kLogisticTable), 0x66dffa8385285a06U);
  EXPECT_EQ(checksum(kLogarithmTable), 0xf0cb3bc965f3a9b9U);
}

}  // namespace
}  // namespace privml::floating
