// SPDX-License-Identifier: Apache-2.0
// For tests: a function's protocol beside its clear twin and its cost.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "functions/fixed/format.h"
#include "twopc/testing/parties.h"

namespace privml::testing {

struct FixedFunction {
  void (*protocol)(Party&, std::span<const u64>, FixedFormat, FixedFormat, std::span<u64>);
  void (*twin)(std::span<const i64>, FixedFormat, FixedFormat, std::span<i64>);
  void (*cost)(CostMeter&, i64, FixedFormat, FixedFormat);
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

inline Numbers clear(const FixedFunction& function, const Numbers& x, FormatPair formats) {
  Numbers y(x.size());
  function.twin(x, formats.in, formats.out, y);
  return y;
}

// The protocol's result, with noise in the input words above the width.
inline Numbers secure(const FixedFunction& function, const Numbers& x, FormatPair formats,
                      const OtKind& ot = {}, Outcome* outcome = nullptr) {
  const auto [in, out] = formats;
  Words words(x.begin(), x.end());
  Both<Words> shares = share(words, in.bits, 7);
  add_noise_above(shares, in.bits);
  Both<Words> results{Words(x.size()), Words(x.size())};
  const Outcome ran = run_parties(ot, [&](Party& party) {
    function.protocol(party, shares[party.rank], in, out, results[party.rank]);
  });
  if (outcome != nullptr) *outcome = ran;
  const Words values = reconstruct(results, out.bits);
  Numbers y(x.size());
  std::ranges::transform(values, y.begin(), [&](u64 v) { return to_signed(v, out.bits); });
  return y;
}

// Equality with the twin, and of bytes, depth and correlations with the cost.
inline void expect_equals_twin(const FixedFunction& function, const Numbers& x, FormatPair formats,
                               const OtKind& ot = {}) {
  const auto [in, out] = formats;
  SCOPED_TRACE(::testing::Message() << in.bits << "." << in.scale << " -> " << out.bits << "."
                                    << out.scale << ", n = " << x.size());
  Outcome outcome;
  const Numbers expected = clear(function, x, formats);
  const Numbers y = secure(function, x, formats, ot, &outcome);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], expected[i]) << "x = " << x[i];
  expect_cost_equals(outcome,
                     [&](CostMeter& meter) { function.cost(meter, std::ssize(x), in, out); });
}

// The first four bytes each of the SHA-256 of what party 0 and party 1 sent, in hexadecimal.
inline std::string wire_trace(const FixedFunction& function, const Numbers& x, FormatPair formats) {
  Outcome outcome;
  secure(function, x, formats, {true, 0}, &outcome);
  return outcome.record.sent_hash[0].substr(0, 8) + outcome.record.sent_hash[1].substr(0, 8);
}

// FNV-1a over 64-bit words: what pins a generated table.
inline u64 checksum(std::span<const u64> words) {
  u64 hash = 0xcbf29ce484222325;
  for (u64 word : words) hash = (hash ^ word) * 0x100000001b3;
  return hash;
}

}  // namespace privml::testing
