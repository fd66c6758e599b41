// SPDX-License-Identifier: Apache-2.0
#include "threepc/field.h"

#include <gtest/gtest.h>

#include "threepc/rows.h"

namespace privml::threepc {
namespace {

typedef u32 Wide __attribute__((vector_size(16)));

const int kPrimes[] = {3, 5, 7, 11, 13, 31, 37, 61, 67, 113, 127};

// Four different pairs of operands at a time, in the lanes of one word.
template <class W, class Field>
void check_all_pairs(int p, int largest) {
  const Field field(static_cast<u32>(p));
  for (int a = 0; a <= largest; ++a) {
    for (int b = 0; b <= largest; b += 4) {
      u32 left = 0, right = 0;
      int as[4], bs[4];
      for (int k = 0; k < 4; ++k) {
        as[k] = (a + 5 * k) % (largest + 1);
        bs[k] = std::min(b + k, largest);
        left |= static_cast<u32>(as[k]) << 8 * k;
        right |= static_cast<u32>(bs[k]) << 8 * k;
      }
      const W x = splat<W>(left), y = splat<W>(right);
      const W results[] = {field.add(x, y), field.multiply(x, y), field.negate(x),
                           subtract(field, x, y)};
      u32 words[4][kQuadsOf<W>], canonical[4][kQuadsOf<W>], flags[kQuadsOf<W>];
      for (int f = 0; f < 4; ++f) {
        store_quads(words[f], results[f]);
        store_quads(canonical[f], W(field.canonical(results[f])));
      }
      store_quads(flags, nonzero(field, results[3]));
      for (int k = 0; k < 4; ++k) {
        const int expected[] = {(as[k] + bs[k]) % p, as[k] * bs[k] % p, (2 * p - as[k]) % p,
                                (2 * p + as[k] - bs[k]) % p};
        for (int f = 0; f < 4; ++f) {
          ASSERT_EQ(canonical[f][0] >> 8 * k & 0xff, static_cast<u32>(expected[f]))
              << "p " << p << " operation " << f << " on " << as[k] << ", " << bs[k];
          ASSERT_LE(words[f][0] >> 8 * k & 0xff, static_cast<u32>(largest));
        }
        ASSERT_EQ(flags[0] >> 8 * k & 0xff, expected[3] != 0 ? 1u : 0u);
      }
    }
  }
}

TEST(Field, BarrettIsExactForEveryPairAndPrime) {
  for (int p : kPrimes) {
    check_all_pairs<u32, Barrett>(p, p - 1);
    check_all_pairs<Wide, Barrett>(p, p - 1);
  }
}

TEST(Field, MersenneIsExactAndTakes127ForZero) {
  check_all_pairs<u32, Mersenne127>(127, 127);
  check_all_pairs<Wide, Mersenne127>(127, 127);
  const Mersenne127 field(127);
  EXPECT_EQ(nonzero(field, u32{0x7f007f01}), 0x00000001u);
}

TEST(Rows, ReaderTakesWhatWriterPut) {
  for (int width = 1; width <= 7; ++width) {
    for (int rows = 1; rows <= 24; ++rows) {
      for (int valid : {16, 9}) {
        const i64 bytes = packed_rows(rows, width);
        EXPECT_EQ(bytes, (rows * width + 7) / 8);
        std::vector<u8> memory(bytes * valid + 1, 0xee);
        const Place place{0, valid, valid};
        RowWriter<Wide> writer{memory.data(), place};
        const auto number = [&](int row, int e) {
          return static_cast<u8>((row * 37 + e * 11 + 5) & ((1 << width) - 1));
        };
        for (int row = 0; row < rows; ++row) {
          u8 values[16];
          for (int e = 0; e < 16; ++e) values[e] = number(row, e);
          Wide value;
          std::memcpy(&value, values, 16);
          writer.put(value, width);
        }
        writer.finish();
        EXPECT_EQ(memory.back(), 0xee);
        RowReader<Wide> reader{memory.data(), place};
        for (int row = 0; row < rows; ++row) {
          const Wide value = reader.take(width);
          u8 values[16];
          std::memcpy(values, &value, 16);
          for (int e = 0; e < valid; ++e) ASSERT_EQ(values[e], number(row, e));
        }
      }
    }
  }
}

}  // namespace
}  // namespace privml::threepc
