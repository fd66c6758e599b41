// SPDX-License-Identifier: Apache-2.0
// What the dealer sees of a sign-bit extraction. Keys are fixed, so no test varies between runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "threepc/sign.h"
#include "threepc/testing/shares.h"

namespace privml::threepc {
namespace {

// All elements have the same m, r and delta.
SignCase repeated(SignField field, i64 m, i64 r, u8 delta, i64 count, u64 seed) {
  SignCase c;
  c.field = field;
  c.m.assign(count, m);
  c.r.assign(count, r);
  c.delta.assign(count, delta);
  c.rotation.resize(count);
  c.mask_counter = seed;
  const u32 key[8] = {99};
  fill_field(
      {key, seed, count, 8, static_cast<u32>(field.bits), nullptr, nullptr, c.rotation.data()});
  return c;
}

// Chi-square of (party 0's list, sum of the lists) against the uniform distribution on all pairs in
// which the sum has one zero anywhere (z = 1) or none (z = 0), in standard deviations; the sum of
// places for a pair that should be impossible.
double deviation(const SignCase& c) {
  const int rows = c.field.bits, width = c.field.width, p = static_cast<int>(c.field.prime);
  const SignLists lists = run_sign(c);
  const int each = static_cast<int>(std::pow(p, rows));
  std::vector<double> seen(each * each);
  for (i64 i = 0; i < c.count(); ++i) {
    int own = 0, sum = 0;
    for (int row = 0; row < rows; ++row) {
      const int a = list_number(lists.first, c.count(), rows, width, i, row);
      const int b = list_number(lists.second, c.count(), rows, width, i, row);
      own = own * p + a;
      sum = sum * p + (a + b) % p;
    }
    ++seen[own * each + sum];
  }
  const int zeros_expected = lists.zero[0];
  double cells = 0, chi = 0, impossible = 0;
  for (int pass : {0, 1}) {
    const double expected = pass == 1 ? static_cast<double>(c.count()) / cells : 0;
    for (int own = 0; own < each; ++own) {
      for (int sum = 0; sum < each; ++sum) {
        int zeros = 0;
        for (int row = 0, rest = sum; row < rows; ++row, rest /= p) zeros += rest % p == 0;
        const double s = seen[own * each + sum];
        if (zeros != zeros_expected) {
          impossible += s;
        } else if (pass == 0) {
          ++cells;
        } else {
          chi += (s - expected) * (s - expected) / expected;
        }
      }
    }
  }
  if (impossible > 0) return 1e9;
  return (chi - (cells - 1)) / std::sqrt(2 * (cells - 1));
}

// For every m, r and delta: uniform given z, so that nothing but z is seen.
TEST(SignLeakage, DealerSeesOneDistributionPerZero) {
  const SignField field = sign_field(3, 5);
  u64 seed = 0;
  for (i64 m = 0; m < 8; ++m)
    for (i64 r = 0; r < 8; ++r)
      for (u8 delta : {0, 1})
        EXPECT_LT(std::abs(deviation(repeated(field, m, r, delta, 1 << 17, seed += 1 << 20))), 5)
            << m << " " << r << " " << int{delta};
}

// The same statistic notices a missing rotation.
TEST(SignLeakage, DistributionDependsOnTheRotation) {
  SignCase c = repeated(sign_field(3, 5), 5, 2, 0, 1 << 17, 0);
  if (run_sign(c).zero[0] == 0) c.delta.assign(c.count(), 1);
  ASSERT_LT(std::abs(deviation(c)), 5);
  std::fill(c.rotation.begin(), c.rotation.end(), u8{0});
  EXPECT_GT(deviation(c), 100);
}

TEST(SignLeakage, MessagesAreCanonical) {
  for (int bits : {32, 64}) {
    SignCase c;
    c.field = sign_field(bits, 127);
    std::mt19937_64 random(bits);
    for (int i = 0; i < 5000; ++i) {
      c.m.push_back(static_cast<i64>(random()));
      c.r.push_back(static_cast<i64>(random()));
    }
    c.draw(1);
    const SignLists lists = run_sign(c);
    for (i64 i = 0; i < c.count(); ++i)
      for (int row = 0; row < bits; ++row) {
        ASSERT_LT(list_number(lists.first, c.count(), bits, 7, i, row), 127);
        ASSERT_LT(list_number(lists.second, c.count(), bits, 7, i, row), 127);
        if (row < bits - 1) {
          ASSERT_LT(list_number(lists.dealt, c.count(), bits - 1, 7, i, row), 127);
        }
      }
  }
}

// ---- the attack on lists without re-randomisation: the ratio of the two shares cancels w_i

using Ratios = std::map<int, int>;

int inverse(int a, int p) {
  for (int b = 1; b < p; ++b)
    if (a * b % p == 1) return b;
  return 0;
}

int ratio(int a, int b, int p) {
  if (b == 0) return a == 0 ? -1 : -2;
  return a * inverse(b, p) % p;
}

// Both shares of t_i + bit_i before the factors, as the dealer would compute them for a guess of
// m's low bits and of msb(m) ^ delta.
Ratios ratios_of_guess(const SignField& field, i64 m_low, int flip, const std::vector<int>& share0,
                       const std::vector<int>& share1) {
  const int rows = field.bits, p = static_cast<int>(field.prime);
  Ratios ratios;
  int prefix[2] = {0, 0};
  for (int row = 0; row < rows; ++row) {
    const int bit = row == rows - 1 ? 0 : static_cast<int>(m_low >> (rows - 2 - row) & 1);
    int u[2];
    for (int party : {0, 1}) {
      const int one = party == 0 ? 1 : 0;
      const int share = party == 0 ? share0[row] : share1[row];
      const int s = bit == 1 ? (one + p - share) % p : share;
      u[party] = (prefix[party] + p - s + one + (party == 0 ? flip ^ bit : 0)) % p;
      prefix[party] = (prefix[party] + s) % p;
    }
    ++ratios[ratio(u[0], u[1], p)];
  }
  return ratios;
}

// rho of element i, row `row`, as parties 0 and 1 draw it.
int shift_of(const SignCase& c, i64 i, int row) {
  const i64 per_list = group_blocks(c.field.bits);
  const u64 block = c.mask_counter + i / 64 * 2 * per_list + per_list + row / 16 * 16 + i % 64 / 4;
  u32 rows[16];
  uniform_rows(kMaskKey, block, bound_below(c.field.prime), rows);
  return static_cast<int>(rows[row % 16] >> 8 * (i % 4) & 0xff);
}

TEST(SignLeakage, RatiosOfTheSharesTellNothing) {
  constexpr int kTrials = 40, kBits = 12, kPrime = 127;
  SignCase c;
  c.field = sign_field(kBits, kPrime);
  std::mt19937_64 random(6);
  for (int i = 0; i < kTrials; ++i) {
    c.m.push_back(static_cast<i64>(random() & 4095));
    c.r.push_back(static_cast<i64>(random() & 4095));
  }
  c.draw(7);
  const SignLists lists = run_sign(c);
  int found_without = 0, found_with = 0;
  for (int i = 0; i < kTrials; ++i) {
    std::vector<int> share0, share1;
    const i64 bits_of_r = (c.r[i] - 1) & 2047;
    for (int row = 0; row < kBits; ++row) {
      const bool pad = row == kBits - 1;
      share0.push_back(pad ? 1 : list_number(lists.dealt, kTrials, kBits - 1, 7, i, row));
      const int bit = pad ? 1 : static_cast<int>(bits_of_r >> (kBits - 2 - row) & 1);
      share1.push_back(pad ? 0 : (bit + kPrime - share0[row]) % kPrime);
    }
    Ratios with, without;
    for (int slot = 0; slot < kBits; ++slot) {
      const int a = list_number(lists.first, kTrials, kBits, 7, i, slot);
      const int b = list_number(lists.second, kTrials, kBits, 7, i, slot);
      const int row = (slot + kBits - c.rotation[i]) % kBits;
      const int rho = shift_of(c, i, row);
      ++with[ratio(a, b, kPrime)];
      ++without[ratio((a + kPrime - rho) % kPrime, (b + rho) % kPrime, kPrime)];
    }
    std::vector<std::pair<i64, int>> guesses_with, guesses_without;
    for (i64 low = 0; low < 2048; ++low)
      for (int flip : {0, 1}) {
        const Ratios guess = ratios_of_guess(c.field, low, flip, share0, share1);
        if (guess == with) guesses_with.emplace_back(low, flip);
        if (guess == without) guesses_without.emplace_back(low, flip);
      }
    const std::pair<i64, int> truth(c.m[i] & 2047, static_cast<int>(c.m[i] >> 11 & 1) ^ c.delta[i]);
    found_without += guesses_without == std::vector{truth};
    found_with += std::ranges::count(guesses_with, truth) > 0;
  }
  EXPECT_EQ(found_without, kTrials) << "the attack itself works on lists without rho";
  EXPECT_EQ(found_with, 0);
}

}  // namespace
}  // namespace privml::threepc
