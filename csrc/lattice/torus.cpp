// SPDX-License-Identifier: Apache-2.0
#include "lattice/torus.h"

#include <algorithm>

#include "base/error.h"
#include "lattice/words.h"

namespace privml::lattice {
namespace {

// Calls part(limb, bits, first, bytes) for the limbs that hold the first `bits` bits.
template <class Part>
void in_limbs(i64 count, int bits, Part&& part) {
  constexpr u64 Torus::* kLimbs[] = {&Torus::high, &Torus::middle, &Torus::low};
  i64 first = 0;
  for (int i = 0; 64 * i < bits; ++i) {
    const int here = std::min(64, bits - 64 * i);
    part(kLimbs[i], here, first, packed_bytes(count, here));
    first += packed_bytes(count, here);
  }
}

}  // namespace

i64 torus_bytes(i64 count, int bits) {
  i64 sum = 0;
  in_limbs(count, bits, [&](auto, int, i64, i64 bytes) { sum += bytes; });
  return sum;
}

void write_torus(std::span<const Torus> numbers, int bits, MutableBytes out) {
  expect(bits >= 1 && bits <= kTorusBits, "lattice: 1 to 192 bits of a number are sent");
  expect(std::ssize(out) == torus_bytes(std::ssize(numbers), bits), "lattice: wrong buffer");
  WipedVector<u64> words(numbers.size());
  in_limbs(std::ssize(numbers), bits, [&](auto limb, int here, i64 first, i64 bytes) {
    for (size_t i = 0; i < words.size(); ++i) words[i] = numbers[i].*limb >> (64 - here);
    write_numbers(words, here, out.subspan(first, bytes));
  });
}

void read_torus(Bytes in, int bits, std::span<Torus> out) {
  expect(bits >= 1 && bits <= kTorusBits, "lattice: 1 to 192 bits of a number are sent");
  if (std::ssize(in) != torus_bytes(std::ssize(out), bits))
    throw ProtocolError("lattice: a message has the wrong length");
  std::ranges::fill(out, Torus{});
  WipedVector<u64> words(out.size());
  in_limbs(std::ssize(out), bits, [&](auto limb, int here, i64 first, i64 bytes) {
    read_numbers(in.subspan(first, bytes), here, words);
    for (size_t i = 0; i < words.size(); ++i) out[i].*limb = words[i] << (64 - here);
  });
}

}  // namespace privml::lattice
