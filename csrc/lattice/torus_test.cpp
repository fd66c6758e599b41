// SPDX-License-Identifier: Apache-2.0
#include "lattice/torus.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace privml::lattice {
namespace {

Torus random_torus(std::mt19937_64& random) { return {random(), random(), random()}; }

TEST(Torus, AddsAndSubtractsWithCarriesThroughAllWords) {
  const Torus one{0, 0, 1}, all{~u64{0}, ~u64{0}, ~u64{0}};
  EXPECT_EQ(all + one, Torus{});
  EXPECT_EQ(-one, all);
  EXPECT_EQ(Torus{} - one, all);
  EXPECT_EQ((Torus{0, 1, 0} - one), (Torus{0, 0, ~u64{0}}));
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const Torus a = random_torus(random), b = random_torus(random);
    EXPECT_EQ(a + b - b, a);
    EXPECT_EQ(-(a - b), b - a);
  }
}

TEST(Torus, RoundsToTheNearestMultiple) {
  for (int bits = 1; bits < kTorusBits; ++bits) {
    const Torus unit = power_of_half(bits), half = power_of_half(bits + 1);
    EXPECT_EQ(half + half, unit);
    EXPECT_EQ(rounded(half, bits), unit);
    EXPECT_EQ(rounded(half - Torus{0, 0, 1}, bits), Torus{});
    EXPECT_EQ(floor_of(unit - Torus{0, 0, 1}, bits), Torus{});
    EXPECT_EQ(floor_of(unit + half, bits), unit);
  }
  EXPECT_EQ(torus_of(3, 2), (Torus{u64{3} << 62, 0, 0}));
  EXPECT_EQ(torus_of(5, 64), (Torus{5, 0, 0}));
}

TEST(Torus, FirstBitsSurviveTheWire) {
  std::mt19937_64 random(2);
  for (int bits = 1; bits <= kTorusBits; ++bits)
    for (const i64 count : {0, 1, 7, 130}) {
      std::vector<Torus> numbers(count), read(count);
      for (Torus& x : numbers) x = floor_of(random_torus(random), bits);
      std::vector<u8> wire(torus_bytes(count, bits));
      EXPECT_LE(std::ssize(wire), packed_bytes(count, bits) + 2);
      write_torus(numbers, bits, wire);
      read_torus(wire, bits, read);
      for (i64 i = 0; i < count; ++i) ASSERT_EQ(read[i], numbers[i]) << bits;
      wire.push_back(0);
      EXPECT_THROW(read_torus(wire, bits, read), ProtocolError);
    }
}

TEST(Torus, BitsAfterTheLastNumberAreRefused) {
  std::vector<Torus> numbers(3);
  std::vector<u8> wire(torus_bytes(3, 69));
  wire.back() = 0x80;  // three numbers of five bits leave one bit
  EXPECT_THROW(read_torus(wire, 69, numbers), ProtocolError);
  EXPECT_THROW(read_torus(wire, 193, numbers), InvalidArgument);
}

}  // namespace
}  // namespace privml::lattice
