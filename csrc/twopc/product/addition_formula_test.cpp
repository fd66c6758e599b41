// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/addition_formula.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/error.h"
#include "twopc/testing/parties.h"

namespace privml::twopc {
namespace {

using namespace twopc::testing;

// u as the table means it: the last cell stands for what is below zero.
i64 signed_place(u64 u, int bits, int place_bits) {
  const u64 last = (u64{1} << bits) - (u64{1} << place_bits);
  return static_cast<i64>(u) - (u >= last ? i64{1} << bits : 0);
}

// x^2 = u^2 + 2 u b + b^2 for x < 2^bits - 2^place_bits.
AdditionFormula square(int bits, int place_bits, int ring_bits) {
  AdditionFormula f{bits, place_bits, 2 * bits + 3, false, ring_bits, 0, {}};
  const auto table = [=](auto&& value) {
    return [=](i64, u64 share, std::span<u64> entries) {
      for (size_t j = 0; j < entries.size(); ++j) {
        const u64 u = (share + (j << place_bits)) & low_mask(bits);
        entries[j] = static_cast<u64>(value(signed_place(u, bits, place_bits)));
      }
    };
  };
  f.terms.resize(3);
  f.terms[0].values = table([](i64 u) { return u * u; });
  f.terms[0].constant = 1;
  f.terms[1].values = table([](i64 u) { return -2 * u; });
  f.terms[1].factor = [](i64, u64 b) { return b; };
  f.terms[1].factor_bits = place_bits;
  f.terms[1].negative = true;
  f.terms[2].values = table([](i64) { return 1; });
  f.terms[2].factor = [](i64, u64 b) { return b * b; };
  f.terms[2].factor_bits = 2 * place_bits;
  return f;
}

// cos(2 pi x / 2^bits), of period 2^bits, at scale 30 in 32 bits with `dropped` bits less.
AdditionFormula cosine(int bits, int place_bits, int dropped) {
  const double turn = 2 * std::acos(-1.0) / std::ldexp(1.0, bits);
  const auto words = [](double v) { return static_cast<u64>(std::llround(std::ldexp(v, 15))); };
  AdditionFormula f{bits, place_bits, 18, false, 32, dropped, {}};
  f.terms.resize(2);
  f.terms[0].values = [=](i64, u64 share, std::span<u64> entries) {
    for (size_t j = 0; j < entries.size(); ++j)
      entries[j] = words(std::cos(turn * static_cast<double>(share + (j << place_bits))));
  };
  f.terms[0].factor = [=](i64, u64 b) { return words(std::cos(turn * static_cast<double>(b))); };
  f.terms[1].values = [=](i64, u64 share, std::span<u64> entries) {
    for (size_t j = 0; j < entries.size(); ++j)
      entries[j] = words(std::sin(turn * static_cast<double>(share + (j << place_bits))));
  };
  f.terms[1].factor = [=](i64, u64 b) { return words(std::sin(turn * static_cast<double>(b))); };
  f.terms[1].negative = true;
  for (AdditionTerm& term : f.terms) term.factor_bits = 17, term.factor_signed = true;
  return f;
}

// e^-x at scale 20 for x at scale 8, with a table of the high digits.
AdditionFormula decay(int bits, int place_bits, int dropped, bool by_ciphertexts) {
  const auto words = [](double v) { return static_cast<u64>(std::llround(std::ldexp(v, 20))); };
  const double ratio = std::exp(std::ldexp(1.0, place_bits - 8));
  const int value_bits = std::bit_width(words(ratio)) + 1;
  AdditionFormula f{bits, place_bits, value_bits, true, 44, dropped, {}, by_ciphertexts};
  f.terms.resize(1);
  f.terms[0].values = [=](i64, u64 share, std::span<u64> entries) {
    for (size_t j = 0; j < entries.size(); ++j) {
      const u64 u = (share + (j << place_bits)) & low_mask(bits);
      entries[j] = words(std::exp(-std::ldexp(signed_place(u, bits, place_bits), -8)));
    }
  };
  f.terms[0].factor = [=](i64, u64 b) {
    return (u64{1} << 20) - words(std::exp(-std::ldexp(static_cast<double>(b), -8)));
  };
  f.terms[0].factor_bits = 20;
  f.terms[0].negative = true;
  f.terms[0].constant = u64{1} << 20;
  return f;
}

Words run(const AdditionFormula& f, const Both<Words>& x, const OtKind& kind = {}) {
  Both<Words> out{Words(x[0].size()), Words(x[0].size())};
  run_parties(kind, [&](ot::Party& p) { addition_formula(p, f, x[p.rank], out[p.rank]); });
  return reconstruct(out, f.ring_bits - f.dropped);
}

TEST(AdditionFormula, ExactOnEveryPairOfShares) {
  for (int bits = 3; bits <= 6; ++bits) {
    for (int place_bits = 1; place_bits < bits; ++place_bits) {
      Both<Words> pairs = all_share_pairs(bits), x;
      for (size_t i = 0; i < pairs[0].size(); ++i) {
        const u64 sum = (pairs[0][i] + pairs[1][i]) & low_mask(bits);
        if (sum >= (u64{1} << bits) - (u64{1} << place_bits)) continue;
        for (int r : {0, 1}) x[r].push_back(pairs[r][i]);
      }
      const Words sums = reconstruct(x, bits);
      add_noise_above(x, bits);
      const Words values = run(square(bits, place_bits, 24), x);
      for (size_t i = 0; i < sums.size(); ++i) ASSERT_EQ(values[i], sums[i] * sums[i]);
    }
  }
}

TEST(AdditionFormula, PeriodicFunctionsTakeEveryNumberAndDroppedBitsStayBounded) {
  for (int dropped : {0, 9, 16}) {
    const AdditionFormula f = cosine(10, 7, dropped);
    const Both<Words> x = share(random_words(5000, 10), 10);
    const Words sums = reconstruct(x, 10), values = run(f, x, {false, 4});
    const double unit = std::ldexp(1.0, dropped - 30);
    for (size_t i = 0; i < sums.size(); ++i) {
      const double angle = 2 * std::acos(-1.0) * static_cast<double>(sums[i]) / 1024;
      const double value = unit * static_cast<double>(to_signed(values[i], 32 - dropped));
      ASSERT_LE(std::abs(value - std::cos(angle)),
                4 * std::ldexp(0.5, -15) + dropped_error(f) * unit);
    }
  }
}

TEST(AdditionFormula, CiphertextsMakeTheSameProducts) {
  for (const int place_bits : {8, 9}) {
    Words numbers(5000);
    for (u64 i = 0; i < numbers.size(); ++i) numbers[i] = i % ((1 << 12) - (1 << place_bits));
    Both<Words> x = share(numbers, 12);
    add_noise_above(x, 12);
    const Words exact = run(decay(12, place_bits, 0, false), x);
    EXPECT_EQ(run(decay(12, place_bits, 0, true), x), exact);
    for (const int dropped : {10, 24, 26}) {
      const AdditionFormula f = decay(12, place_bits, dropped, true);
      const Words values = run(f, x, {false, 4});
      for (size_t i = 0; i < values.size(); ++i) {
        const double unit = std::ldexp(static_cast<double>(exact[i]), -dropped);
        const double value = static_cast<double>(to_signed(values[i], 44 - dropped));
        ASSERT_LE(std::abs(value - unit), dropped_error(f)) << i;
      }
    }
  }
}

// The lines of docs/fixed-point-math.md.
TEST(AdditionFormula, DocumentedExample) {
  const auto words = [](double v) { return static_cast<u64>(std::llround(std::ldexp(v, 16))); };
  AdditionFormula f{.bits = 14, .place_bits = 10, .value_bits = 21, .ring_bits = 40, .dropped = 18};
  const auto table = [=](double (*function)(double)) {
    return [=](i64, u64 share, std::span<u64> entries) {
      for (size_t j = 0; j < entries.size(); ++j) {
        const u64 u = (share + (j << 10)) & low_mask(14);
        const u64 last = low_mask(14) - low_mask(10);  // below zero from here on
        const double place = static_cast<double>(u) - (u >= last ? std::ldexp(1.0, 14) : 0.0);
        entries[j] = words(function(std::ldexp(place, -12)));
      }
    };
  };
  f.terms.resize(2);
  f.terms[0].values = table(std::cosh);
  f.terms[0].factor = [=](i64, u64 b) { return words(std::cosh(std::ldexp(double(b), -12))); };
  f.terms[1].values = table(std::sinh);
  f.terms[1].factor = [=](i64, u64 b) { return words(std::sinh(std::ldexp(double(b), -12))); };
  for (AdditionTerm& term : f.terms) term.factor_bits = 18;
  Words numbers(1 << 13);
  for (u64 i = 0; i < numbers.size(); ++i) numbers[i] = i;
  const Both<Words> x = share(numbers, 14);
  const Words y = run(f, x);
  for (u64 i = 0; i < numbers.size(); ++i) {
    const double exact = std::ldexp(std::cosh(std::ldexp(double(i), -12)), 14);
    ASSERT_LE(std::abs(static_cast<double>(y[i]) - exact), 2 + dropped_error(f)) << i;
  }
}

TEST(AdditionFormula, CostsEqualTheLedger) {
  expect_costs_equal([](i64 n) {
    std::vector<CostRow> rows;
    for (const AdditionFormula& f :
         {square(6, 3, 20), square(14, 11, 60), cosine(10, 7, 9), decay(12, 9, 10, true)}) {
      rows.push_back({[=](ot::Party& p) {
                        Words out(n);
                        addition_formula(p, f, random_words(n, f.bits), out);
                      },
                      [=](ot::CostMeter& m) { cost_addition_formula(m, n, f); }});
    }
    return rows;
  });
}

TEST(AdditionFormula, RefusesWrongArguments) {
  run_parties({}, [](ot::Party& p) {
    Words x(3), out(3), longer(4);
    EXPECT_THROW(addition_formula(p, square(6, 3, 20), x, longer), InvalidArgument);
    EXPECT_THROW(addition_formula(p, square(6, 3, 10), x, out), InvalidArgument);
    EXPECT_THROW(addition_formula(p, square(20, 3, 64), x, out), InvalidArgument);
    EXPECT_THROW(addition_formula(p, AdditionFormula{6, 3, 8, false, 20, 0, {}}, x, out),
                 InvalidArgument);
    AdditionFormula signs = cosine(10, 7, 9);
    signs.by_ciphertexts = true;
    EXPECT_FALSE(fits_ciphertexts(signs));
    EXPECT_THROW(addition_formula(p, signs, x, out), InvalidArgument);
    EXPECT_TRUE(fits_ciphertexts(decay(12, 9, 10, true)));
  });
}

}  // namespace
}  // namespace privml::twopc
