// SPDX-License-Identifier: Apache-2.0
// For tests: a function's protocol beside its clear twin and its cost.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "base/testing/sanitized.h"
#include "functions/fixed/function.h"
#include "twopc/testing/parties.h"

namespace privml::fixed::testing {

struct TestedFunction {
  FixedFunction function;
  void (*twin)(std::span<const i64>, FixedFormat, FixedFormat, std::span<i64>);
  bool ciphertexts = false;  // ot::Party::ciphertexts
};

struct FormatPair {
  FixedFormat in, out;
};

using Numbers = std::vector<i64>;

// first, first + 1, ..., last.
inline Numbers all_from(i64 first, i64 last) {
  Numbers numbers(last - first + 1);
  for (i64 i = 0; i < std::ssize(numbers); ++i) numbers[i] = first + i;
  return numbers;
}

inline Numbers all_numbers(int bits) {
  return all_from(-(i64{1} << (bits - 1)), (i64{1} << (bits - 1)) - 1);
}

// All numbers of `bits` bits; under sanitizers every 13th.
inline Numbers every_number(int bits) {
  const i64 step = privml::testing::kSanitized ? 13 : 1;
  Numbers numbers;
  for (i64 x = -(i64{1} << (bits - 1)); x < i64{1} << (bits - 1); x += step) numbers.push_back(x);
  return numbers;
}

// `count` random numbers between first and last, these two first.
inline Numbers random_numbers(i64 count, i64 first, i64 last, u64 seed = 1) {
  std::mt19937_64 random(seed);
  Numbers numbers(count);
  for (i64 i = 0; i < count; ++i) {
    const u64 range = static_cast<u64>(last) - static_cast<u64>(first) + 1;
    const u64 place = i == 0 ? 0 : i == 1 ? range - 1 : random() % range;
    numbers[i] = static_cast<i64>(static_cast<u64>(first) + place);
  }
  return numbers;
}

inline Numbers clear(const TestedFunction& tested, const Numbers& x, FormatPair formats) {
  Numbers y(x.size());
  tested.twin(x, formats.in, formats.out, y);
  return y;
}

// The protocol's result, with noise in the input words above the width.
inline Numbers secure(const TestedFunction& tested, const Numbers& x, FormatPair formats,
                      const twopc::testing::OtKind& ot = {},
                      twopc::testing::Outcome* outcome = nullptr, i64 chunk_factor = 1) {
  const auto [in, out] = formats;
  twopc::testing::Words words(x.begin(), x.end());
  twopc::testing::Both<twopc::testing::Words> shares = twopc::testing::share(words, in.bits, 7);
  twopc::testing::add_noise_above(shares, in.bits);
  twopc::testing::Both<twopc::testing::Words> results{twopc::testing::Words(x.size()),
                                                      twopc::testing::Words(x.size())};
  const twopc::testing::Outcome ran = twopc::testing::run_parties(ot, [&](ot::Party& party) {
    party.chunk_factor = chunk_factor;
    party.ciphertexts = tested.ciphertexts;
    evaluate_function(party, tested.function, shares[party.rank], in, out, results[party.rank]);
  });
  if (outcome != nullptr) *outcome = ran;
  const twopc::testing::Words values = twopc::testing::reconstruct(results, out.bits);
  Numbers y(x.size());
  std::ranges::transform(values, y.begin(), [&](u64 v) { return to_signed(v, out.bits); });
  return y;
}

// Equality with the twin, and of bytes, depth and correlations with the cost; over a slow link with
// a factor above 1.
inline void expect_equals_twin(const TestedFunction& tested, const Numbers& x, FormatPair formats,
                               const twopc::testing::OtKind& ot = {}, i64 chunk_factor = 1) {
  const auto [in, out] = formats;
  SCOPED_TRACE(::testing::Message() << in.bits << "." << in.scale << " -> " << out.bits << "."
                                    << out.scale << ", n = " << x.size());
  twopc::testing::Outcome outcome;
  const Numbers expected = clear(tested, x, formats);
  const Numbers y = secure(tested, x, formats, ot, &outcome, chunk_factor);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], expected[i]) << "x = " << x[i];
  twopc::testing::expect_cost_equals(outcome, [&](ot::CostMeter& meter) {
    meter.chunk_factor = chunk_factor;
    meter.ciphertexts = tested.ciphertexts;
    cost_function(meter, tested.function, std::ssize(x), in, out);
  });
}

// The first four bytes each of the SHA-256 of what party 0 and party 1 sent, in hexadecimal.
inline std::string wire_trace(const TestedFunction& tested, const Numbers& x, FormatPair formats) {
  twopc::testing::Outcome outcome;
  secure(tested, x, formats, {true, 0}, &outcome);
  return outcome.record.sent_hash[0].substr(0, 8) + outcome.record.sent_hash[1].substr(0, 8);
}

// FNV-1a over 64-bit words: what pins a generated table.
inline u64 checksum(std::span<const u64> words) {
  u64 hash = 0xcbf29ce484222325;
  for (u64 word : words) hash = (hash ^ word) * 0x100000001b3;
  return hash;
}

}  // namespace privml::fixed::testing
