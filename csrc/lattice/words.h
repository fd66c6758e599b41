// SPDX-License-Identifier: Apache-2.0
// Numbers modulo 2^(64 + low_bits), 0 <= low_bits <= 16, as arrays of their high 64 bits and of the
// low bits below those: number i is high[i] 2^low_bits + low[i]. On the wire they are packed
// without gaps, the bits after the last being zero.
#pragma once

#include "base/buffer.h"
#include "base/types.h"

namespace privml::lattice {

inline constexpr int kMostLowBits = 16;

struct WordsView {
  std::span<const u64> high;
  std::span<const u16> low;
  i64 size() const { return std::ssize(high); }
  WordsView part(i64 first, i64 count) const {
    return {high.subspan(first, count), low.subspan(first, count)};
  }
};

struct WordsOutput {
  std::span<u64> high;
  std::span<u16> low;
  i64 size() const { return std::ssize(high); }
  WordsOutput part(i64 first, i64 count) const {
    return {high.subspan(first, count), low.subspan(first, count)};
  }
  operator WordsView() const { return {high, low}; }
};

// Wiped, for some are secret.
struct Words {
  WipedVector<u64> high;
  WipedVector<u16> low;

  explicit Words(i64 count = 0) : high(count), low(count) {}
  WordsView view() const { return {high, low}; }
  WordsOutput output() { return {high, low}; }
};

// The number as one of 128 bits, and back modulo 2^(64 + low_bits).
inline u128 joined(u64 high, u16 low, int low_bits) { return u128{high} << low_bits | low; }
inline u64 high_of(u128 number, int low_bits) { return static_cast<u64>(number >> low_bits); }
inline u16 low_of(u128 number, int low_bits) {
  return static_cast<u16>(static_cast<u64>(number) & low_mask(low_bits));
}

// The high words, then the low bits.
i64 words_bytes(i64 count, int low_bits);
void write_words(WordsView words, int low_bits, MutableBytes out);
// Throws ProtocolError unless `in` has words_bytes() bytes that write_words() could have written.
void read_words(Bytes in, int low_bits, WordsOutput out);

// Numbers of `bits` bits, 1 to 64.
void write_numbers(std::span<const u64> numbers, int bits, MutableBytes out);
void read_numbers(Bytes in, int bits, std::span<u64> out);

}  // namespace privml::lattice
