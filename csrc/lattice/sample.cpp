// SPDX-License-Identifier: Apache-2.0
#include "lattice/sample.h"

#include <algorithm>

#include "base/error.h"
#include "base/multiversion.h"
#include "lattice/parameters.h"

namespace privml::lattice {
namespace {

constexpr i64 kTile = 1024;

PRIVML_TARGET_CLONES
void to_ternary(const u64* random, i64 count, signed char* out) {
  constexpr u64 kThird = ~u64{0} / 3;
  for (i64 i = 0; i < count; ++i)
    out[i] = static_cast<signed char>((random[i] > kThird) + (random[i] > 2 * kThird) - 1);
}

// The numbers of ones in the low bits and in those above, side by side in each half of a word.
PRIVML_TARGET_CLONES
void to_error(const u64* random, i64 count, signed char* out) {
  constexpr u64 kPairs = (u64{1} << kErrorPairs) - 1;
  for (i64 i = 0; i < count; ++i) {
    u64 x = (random[i] & kPairs) | (random[i] >> kErrorPairs & kPairs) << 32;
    x = x - (x >> 1 & 0x5555555555555555);
    x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
    x += x >> 8;
    x += x >> 16;
    out[i] = static_cast<signed char>((x & 0xff) - (x >> 32 & 0xff));
  }
}

template <class Convert>
void sample(crypto::Prg& prg, std::span<signed char> out, Convert convert) {
  WipedVector<u64> random(std::min(kTile, std::ssize(out)));
  for (i64 done = 0; done < std::ssize(out); done += kTile) {
    const i64 count = std::min(kTile, std::ssize(out) - done);
    prg.fill_ring(std::span(random).first(count), 64);
    convert(random.data(), count, out.data() + done);
  }
}

}  // namespace

void sample_uniform(crypto::Prg& prg, int low_bits, WordsOutput out) {
  prg.fill_ring(out.high, 64);
  if (low_bits == 0) {
    std::ranges::fill(out.low, u16{0});
    return;
  }
  prg.fill_bytes({reinterpret_cast<u8*>(out.low.data()), out.low.size_bytes()});
  const u16 mask = static_cast<u16>(low_mask(low_bits));
  for (u16& low : out.low) low &= mask;
}

void sample_ternary(crypto::Prg& prg, std::span<signed char> out) { sample(prg, out, to_ternary); }

void sample_error(crypto::Prg& prg, std::span<signed char> out) { sample(prg, out, to_error); }

Small sample_secret(crypto::Prg& prg, i64 n, i64 most) {
  expect(n >= 1 && 2 * n < 3 * most, "lattice: secrets are likely to have fewer places");
  Small secret(n);
  i64 weight = 0;
  while (weight % 2 == 0 || weight > most) {
    sample_ternary(prg, secret);
    weight = 0;
    for (const signed char x : secret) weight += x * x;
  }
  return secret;
}

}  // namespace privml::lattice
