// SPDX-License-Identifier: Apache-2.0
#include "lattice/words.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/pack.h"

namespace privml::lattice {
namespace {

void expect_size(Bytes in, i64 bytes) {
  if (std::ssize(in) != bytes) throw ProtocolError("lattice: a message has the wrong length");
}

void expect_no_rest(Bytes in, i64 count, int bits) {
  const int used = static_cast<int>(count * bits % 8);
  if (used != 0 && in.back() >> used != 0)
    throw ProtocolError("lattice: bits after the last number are set");
}

}  // namespace

i64 words_bytes(i64 count, int low_bits) {
  return 8 * count + (low_bits == 0 ? 0 : packed_bytes(count, low_bits));
}

void write_words(WordsView words, int low_bits, MutableBytes out) {
  expect(std::ssize(out) == words_bytes(words.size(), low_bits), "lattice: wrong buffer");
  std::memcpy(out.data(), words.high.data(), words.high.size_bytes());
  if (low_bits == 0) return;
  const WipedVector<u64> low(words.low.begin(), words.low.end());
  pack(low.data(), words.size(), low_bits, out.data() + words.high.size_bytes());
}

void read_words(Bytes in, int low_bits, WordsOutput out) {
  expect_size(in, words_bytes(out.size(), low_bits));
  std::memcpy(out.high.data(), in.data(), out.high.size_bytes());
  if (low_bits == 0) {
    std::ranges::fill(out.low, u16{0});
    return;
  }
  const Bytes rest = in.subspan(out.high.size_bytes());
  expect_no_rest(rest, out.size(), low_bits);
  WipedVector<u64> low(out.size());
  unpack(rest.data(), out.size(), low_bits, low.data());
  for (i64 i = 0; i < out.size(); ++i) out.low[i] = static_cast<u16>(low[i]);
}

void write_numbers(std::span<const u64> numbers, int bits, MutableBytes out) {
  expect(std::ssize(out) == packed_bytes(std::ssize(numbers), bits), "lattice: wrong buffer");
  pack(numbers.data(), std::ssize(numbers), bits, out.data());
}

void read_numbers(Bytes in, int bits, std::span<u64> out) {
  expect_size(in, packed_bytes(std::ssize(out), bits));
  if (out.empty()) return;
  expect_no_rest(in, std::ssize(out), bits);
  unpack(in.data(), std::ssize(out), bits, out.data());
}

}  // namespace privml::lattice
