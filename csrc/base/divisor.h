// SPDX-License-Identifier: Apache-2.0
// Division of secret words by a public number, in a time that does not depend on them: a
// processor's own division takes longer for some dividends than for others.
//
// Method  with l the bitlength of d - 1, N the bits of a word and m = floor(2^(N + l) / d) + 1:
//         floor(x / d) = floor(x m / 2^(N + l)), for m d exceeds 2^(N + l) by at most d <= 2^l, so
//         x m / 2^(N + l) exceeds x / d by at most x / (2^N d) < 1 / d. The top bit of m, 2^N, is
//         not stored: x is added, without a carry out of the word.
// Source  Granlund and Montgomery, "Division by invariant integers using multiplication" (PLDI
//         1994), Figure 4.1.
#pragma once

#include <bit>
#include <limits>

#include "base/error.h"
#include "base/types.h"

namespace privml {

template <class Word>
class Divisor {
 public:
  struct Result {
    Word quotient, remainder;
  };

  // Throws InvalidArgument unless divisor > 0.
  constexpr explicit Divisor(Word divisor) : divisor_(divisor) {
    expect(divisor > 0, "Divisor: nothing is divided by 0");
    const int length = std::bit_width(static_cast<Word>(divisor - 1));
    const u128 above = (u128{1} << length) - divisor;
    multiplier_ = static_cast<Word>((above << kBits) / divisor + 1);
    first_shift_ = length > 0 ? 1 : 0;
    second_shift_ = length > 0 ? length - 1 : 0;
  }

  constexpr Word divisor() const { return divisor_; }

  constexpr Word quotient(Word x) const {
    const Word high = static_cast<Word>(u128{multiplier_} * x >> kBits);
    const Word half = static_cast<Word>(x - high) >> first_shift_;
    return static_cast<Word>(high + half) >> second_shift_;
  }

  constexpr Result divide(Word x) const {
    const Word q = quotient(x);
    return {q, static_cast<Word>(x - q * divisor_)};
  }

 private:
  static constexpr int kBits = std::numeric_limits<Word>::digits;

  Word divisor_;
  Word multiplier_;
  int first_shift_, second_shift_;
};

using PublicDivisor = Divisor<u64>;

}  // namespace privml
