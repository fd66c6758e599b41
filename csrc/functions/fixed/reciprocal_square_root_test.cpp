// SPDX-License-Identifier: Apache-2.0
#include "functions/fixed/reciprocal_square_root.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "functions/fixed/normalization.h"
#include "functions/fixed/testing/functions.h"

namespace privml::fixed {
namespace {

using namespace fixed::testing;
using namespace twopc::testing;

constexpr TestedFunction kRsqrt{rsqrt, clear_rsqrt};
constexpr TestedFunction kSqrt{sqrt, clear_sqrt};
constexpr TestedFunction kSignificant{rsqrt_significant<20>, clear_rsqrt_significant<20>};
constexpr TestedFunction kSignificant14{rsqrt_significant<14>, clear_rsqrt_significant<14>};
constexpr TestedFunction kAll[] = {kRsqrt, kSqrt, kSignificant, kSignificant14};

TEST(Normalization, AllSharesAtSmallWidths) {
  for (int bits : {2, 3, 6}) {
    Both<Words> x = all_share_pairs(bits);
    const Words values = reconstruct(x, bits);
    add_noise_above(x, bits);
    Both<Normalized> out;
    Both<functions::RingShares> chosen;
    Words table(bits - 1);
    for (int k = 0; k < bits - 1; ++k) table[k] = k + 1;
    const Outcome outcome = run_parties({}, [&](ot::Party& party) {
      const int r = party.rank;
      functions::Evaluator evaluator(party, std::ssize(values));
      out[r] = normalize(evaluator, evaluator.load(x[r], 0), bits);
      chosen[r] = select_by_place(evaluator, out[r], table, 99);
    });
    for (std::size_t i = 0; i < values.size(); ++i) {
      const ClearNormalized expected = clear_normalize(values[i], bits);
      EXPECT_EQ((out[0].mantissa[i] + out[1].mantissa[i]) & low_mask(bits - 1), expected.mantissa);
      EXPECT_EQ(chosen[0][i] ^ chosen[1][i], expected.place < 0 ? 99U : expected.place + 1U);
    }
    expect_cost_equals(outcome, [&](ot::CostMeter& m) {
      functions::Evaluator evaluator(m, std::ssize(values));
      normalize(evaluator, evaluator.ring(evaluator.n), bits);
    });
  }
}

// The later product, the additive bit and the lookup's vectors; one number alone has no flight to
// share.
TEST(Normalization, WhatContinuesIt) {
  const int bits = 5, places = bits - 1, ring = 12, flag_ring = 7;
  const Continuation plain{{{1, 6, 3, 7}, 5}, 3, ring, {{0, 1, 1, 0}, 1}, flag_ring, nullptr};
  Both<Words> all = all_share_pairs(bits);
  const Both<Words> one{Words{3}, Words{6}};
  const int width = 9;
  const LineLookup lookup{3,      4,      ring,  {width}, {{4, false}, 2, {5, false}, ring},
                          {0, 5}, {0, 0}, false, 0,       false};
  for (const Both<Words>& x : {all, one})
    for (const bool looks_up : {false, true}) {
      Continuation continuation = plain;
      if (looks_up) continuation.lookup = &lookup;
      const i64 n = std::ssize(x[0]);
      const Words values = reconstruct(x, bits);
      Both<Continued> out;
      Both<Words> products, flags;
      Both<bool> has_vectors;
      const Outcome outcome = run_parties({}, [&](ot::Party& party) {
        const int r = party.rank;
        functions::Evaluator evaluator(party, n);
        out[r] = normalize(evaluator, evaluator.load(x[r], 0), bits, continuation);
        const functions::RingShares u = evaluator.map(n, ring, [&](i64 i) { return 77 * x[r][i]; });
        const functions::RingShares product = multiply_by_power(evaluator, out[r], u);
        products[r].assign(product.values.begin(), product.values.end());
        flags[r].assign(out[r].flag.values.begin(), out[r].flag.values.end());
        has_vectors[r] = out[r].has_vectors;
      });
      EXPECT_EQ(has_vectors[0], looks_up && n > 1);
      const Words product = reconstruct(products, ring), flag = reconstruct(flags, flag_ring);
      for (i64 i = 0; i < n; ++i) {
        const ClearNormalized expected = clear_normalize(values[i], bits);
        const auto word = [&](const PlaceTable& table) {
          return expected.place < 0 ? table.none : table.words[expected.place];
        };
        ASSERT_EQ((out[0].number.mantissa[i] + out[1].number.mantissa[i]) & low_mask(places),
                  expected.mantissa);
        ASSERT_EQ(product[i], word(plain.power) * 77 * (x[0][i] + x[1][i]) & low_mask(ring));
        ASSERT_EQ(flag[i], word(plain.flag));
      }
      expect_cost_equals(outcome, [&](ot::CostMeter& meter) {
        functions::Evaluator evaluator(meter, n);
        Continued number = normalize(evaluator, evaluator.ring(n), bits, continuation);
        multiply_by_power(evaluator, number, evaluator.ring(n));
      });
    }
}

TEST(Rsqrt, AllInputsOfSixteenBits) {
  expect_equals_twin(kRsqrt, all_from(0, (1 << 15) - 1), {{16, 12}, {16, 12}});
  expect_equals_twin(kRsqrt, every_number(16), {{16, 7}, {16, 10}});
}

TEST(Sqrt, AllInputsOfSixteenBits) {
  expect_equals_twin(kSqrt, every_number(16), {{16, 12}, {16, 12}});
}

// The largest error in units of the last place of results that fit, in all and in the lower half.
struct Errors {
  double all = 0, lower = 0;
};

Errors errors_of_rsqrt(const Numbers& x, FixedFormat in, FixedFormat out) {
  Numbers y(x.size());
  clear_rsqrt(x, in, out, y);
  const double largest = std::ldexp(1.0, out.bits - 1);
  Errors errors;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = std::ldexp(1.0, out.scale) / std::sqrt(std::ldexp(x[i], -in.scale));
    if (exact > largest - 1) continue;
    const double error = std::abs(static_cast<double>(y[i]) - exact);
    errors.all = std::max(errors.all, error);
    if (exact < largest / 2) errors.lower = std::max(errors.lower, error);
  }
  return errors;
}

TEST(Rsqrt, ErrorsOfAllInputsOfSixteenBitsUpToTheLargestResult) {
  const Numbers x = all_from(1, (1 << 15) - 1);
  for (int scale : {4, 8, 12, 13})
    for (int bits : {8, 10, 20, 32})
      for (int out = 1; out <= bits - 2; ++out) {
        const Errors errors = errors_of_rsqrt(x, {16, scale}, {bits, out});
        EXPECT_LT(errors.all, 1.4) << scale << " " << bits << " " << out;
        EXPECT_LT(errors.lower, 1.0) << scale << " " << bits << " " << out;
      }
}

TEST(Rsqrt, ErrorsOfWideInputsNearTheLargestResult) {
  double most = 0;
  for (FixedFormat in : {FixedFormat{20, 16}, FixedFormat{24, 20}, FixedFormat{28, 24},
                         FixedFormat{32, 16}, FixedFormat{32, 28}})
    for (int bits : {16, 24, 32})
      for (int out = 1; out <= bits - 2; ++out) {
        const int top = 2 * (out - bits + 1) + in.scale;  // where the result is 2^(bits - 1)
        if (top < 2 || top > in.bits - 3) continue;
        const i64 first = i64{1} << top;
        const Numbers x = all_from(first, std::min(2 * first, first + 20000));
        most = std::max(most, errors_of_rsqrt(x, in, {bits, out}).all);
      }
  EXPECT_LT(most, 1.4);
  EXPECT_GT(most, 1.3);  // they do err by more than a unit
}

TEST(SquareRoots, EveryNarrowFormat) {
  for (const TestedFunction& function : kAll)
    for (int bits : {2, 3, 9, 10})
      for (int scale = 0; scale <= bits - 2; scale += bits == 10 ? 3 : 1)
        for (FixedFormat out : {FixedFormat{2, 0}, FixedFormat{8, 4}, FixedFormat{13, 11}})
          expect_equals_twin(function, all_from(0, (1 << (bits - 1)) - 1), {{bits, scale}, out});
}

TEST(SquareRoots, WideFormats) {
  for (const TestedFunction& function : kAll)
    for (FixedFormat in : {FixedFormat{16, 0}, FixedFormat{16, 14}, FixedFormat{32, 12},
                           FixedFormat{32, 24}, FixedFormat{32, 30}, FixedFormat{32, 0}})
      for (FixedFormat out :
           {FixedFormat{16, 14}, FixedFormat{32, 0}, FixedFormat{32, 12}, FixedFormat{32, 30}}) {
        Numbers x = random_numbers(60, 0, (i64{1} << (in.bits - 1)) - 1);
        for (int i = 0; i < in.bits - 1; ++i) x.push_back(i64{1} << i | (x[i] >> (31 - i)));
        expect_equals_twin(function, x, {in, out});
      }
}

TEST(SquareRoots, OverSoftSpokenAndAroundAChunk) {
  for (const TestedFunction& function : kAll) {
    expect_equals_twin(function, random_numbers(500, 0, (1 << 15) - 1), {{16, 12}, {16, 12}},
                       {false, 4});
    for (i64 n : {i64{0}, i64{1}, i64{2}, kFunctionChunk + 1})
      expect_equals_twin(function, random_numbers(n, 0, 500), {{10, 5}, {8, 4}});
  }
}

// A double's error is far below the bound; `make prove` has the proof.
TEST(SquareRoots, WithinAUnitOfTheExactValue) {
  for (const auto& [in, out] : {FormatPair{{16, 12}, {16, 12}}, FormatPair{{32, 16}, {32, 16}},
                                FormatPair{{32, 24}, {32, 20}}, FormatPair{{9, 4}, {12, 6}}}) {
    const Numbers x = random_numbers(2000, 1, (i64{1} << (in.bits - 1)) - 1, 5);
    const Numbers inverse = clear(kRsqrt, x, {in, out}), root = clear(kSqrt, x, {in, out});
    const double most = std::ldexp(1, out.bits - 1) - 2;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = std::sqrt(std::ldexp(x[i], -in.scale));
      const double up = std::ldexp(exact, out.scale), down = std::ldexp(1 / exact, out.scale);
      if (up < most) {
        ASSERT_NEAR(static_cast<double>(root[i]), up, 1.2) << x[i];
      }
      if (down < most) {
        ASSERT_NEAR(static_cast<double>(inverse[i]), down, 1.2) << x[i];
      }
    }
  }
}

TEST(SquareRoots, OfZero) {
  for (const FormatPair formats : {FormatPair{{16, 12}, {16, 12}}, FormatPair{{8, 4}, {16, 12}},
                                   FormatPair{{32, 13}, {32, 12}}}) {
    const Numbers x{0, 1};
    EXPECT_EQ(clear(kSqrt, x, formats)[0], 0);
    const Numbers y = clear(kRsqrt, x, formats);
    EXPECT_EQ(y[0], y[1]);
    expect_equals_twin(kSqrt, x, formats);
    expect_equals_twin(kRsqrt, x, formats);
  }
}

TEST(Rsqrt, BeyondTheOutputFormatItIsPositiveAndLarge) {
  for (const FormatPair formats : {FormatPair{{16, 13}, {16, 13}}, FormatPair{{8, 6}, {8, 6}},
                                   FormatPair{{32, 30}, {16, 14}}}) {
    const i64 quarter = i64{1} << (formats.out.bits - 3);
    const double unit = std::ldexp(1, -formats.in.scale);
    for (i64 x = 0; x < 100; ++x) {
      if (x > 0 && std::ldexp(1 / std::sqrt(x * unit), formats.out.scale + 1) < 4.0 * quarter)
        break;
      EXPECT_GE(clear(kRsqrt, {x}, formats)[0], quarter) << x;
    }
  }
}

TEST(SquareRoots, RefuseOtherFormats) {
  Numbers x{1}, y(1), two(2);
  for (const TestedFunction& function : kAll) {
    EXPECT_THROW(function.twin(x, {33, 12}, {16, 12}, y), InvalidArgument);
    EXPECT_THROW(function.twin(x, {16, 12}, {16, 15}, y), InvalidArgument);
    EXPECT_THROW(function.twin(x, {16, 12}, {16, 12}, two), InvalidArgument);
  }
}

TEST(SquareRoots, OverASlowLink) {
  for (const TestedFunction& root : kAll)
    for (const FormatPair& formats : {FormatPair{{26, 16}, {26, 16}}, {{16, 12}, {16, 12}}})
      for (i64 n : {1, 2, 300})
        expect_equals_twin(root, random_numbers(n, 0, (i64{1} << (formats.in.bits - 1)) - 1),
                           formats, {}, 8);
}

TEST(SquareRoots, WireTraces) {
  const Numbers x = random_numbers(100, 0, (1 << 15) - 1);
  EXPECT_EQ(wire_trace(kRsqrt, x, {{16, 12}, {16, 12}}), "d095ed61ed3b62cc");
  EXPECT_EQ(wire_trace(kSqrt, x, {{16, 12}, {16, 12}}), "2fc24ff294da7571");
}

}  // namespace
}  // namespace privml::fixed
