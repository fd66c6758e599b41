// SPDX-License-Identifier: Apache-2.0
// Words of k + 2s bits: what the preprocessing authenticates before its sacrifice, where values are
// opened mod 2^(k+s) and s further bits keep the MACs sound.
#pragma once

#include <cstring>

#include "spdz2k/shares/ring.h"

namespace privml::spdz2k {

// Z_{2^192}.
struct U192 {
  u64 limb[3];

  U192() = default;
  constexpr U192(u128 low, u64 high = 0)
      : limb{static_cast<u64>(low), static_cast<u64>(low >> 64), high} {}

  constexpr u128 low() const { return u128{limb[1]} << 64 | limb[0]; }

  friend constexpr U192 operator+(U192 a, U192 b) {
    const u128 low = a.low() + b.low();
    return {low, a.limb[2] + b.limb[2] + (low < a.low())};
  }
  friend constexpr U192 operator-(U192 a, U192 b) {
    const u128 low = a.low() - b.low();
    return {low, a.limb[2] - b.limb[2] - (a.low() < b.low())};
  }
  friend constexpr U192 operator-(U192 a) { return U192(0) - a; }
  friend constexpr U192 operator*(U192 a, U192 b) {
    const u128 first = u128{a.limb[0]} * b.limb[0];
    const u128 cross = u128{a.limb[0]} * b.limb[1], other = u128{a.limb[1]} * b.limb[0];
    const u128 middle = (first >> 64) + static_cast<u64>(cross) + static_cast<u64>(other);
    const u64 high = static_cast<u64>(middle >> 64) + static_cast<u64>(cross >> 64) +
                     static_cast<u64>(other >> 64) + a.limb[0] * b.limb[2] + a.limb[1] * b.limb[1] +
                     a.limb[2] * b.limb[0];
    return {middle << 64 | static_cast<u64>(first), high};
  }
  constexpr U192& operator+=(U192 b) { return *this = *this + b; }
  constexpr U192& operator-=(U192 b) { return *this = *this - b; }
};

template <class R>
struct WideOf;
template <>
struct WideOf<Ring8> {
  using type = u32;
};
template <>
struct WideOf<Ring32> {
  using type = u128;
};
template <>
struct WideOf<Ring64> {
  using type = U192;
};
template <class R>
using Wide = typename WideOf<R>::type;

// Bits of the modulus of a word: those of values with their MACs, or s more.
template <class R>
inline constexpr int kNarrowBits = R::k + R::s;
template <class R>
inline constexpr int kWideBits = R::k + 2 * R::s;
template <class R, class W>
inline constexpr int kModulusBits =
    sizeof(W) == sizeof(typename R::Word) ? kNarrowBits<R> : kWideBits<R>;

inline U192 product(const U192& a, const U192& b) { return a * b; }

// low + 2^(k+s) * high, and back.
template <class R>
constexpr Wide<R> join(typename R::Word low, typename R::BitWord high) {
  if constexpr (std::is_same_v<R, Ring64>) {
    return U192(low, high);
  } else {
    return static_cast<Wide<R>>(Wide<R>{high} << kNarrowBits<R> | low);
  }
}
template <class R>
constexpr typename R::Word narrow(const Wide<R>& x) {
  if constexpr (std::is_same_v<R, Ring64>) {
    return x.low();
  } else {
    return static_cast<typename R::Word>(x);
  }
}
template <class R>
constexpr typename R::BitWord upper(const Wide<R>& x) {
  if constexpr (std::is_same_v<R, Ring64>) {
    return x.limb[2];
  } else {
    return static_cast<typename R::BitWord>(x >> kNarrowBits<R>);
  }
}

// Whether x = y mod 2^bits, 1 <= bits <= the word's.
template <class W>
constexpr bool equal_modulo(W x, W y, int bits) {
  return low_bits(static_cast<W>(x - y), bits) == 0;
}
inline bool equal_modulo(const U192& x, const U192& y, int bits) {
  const U192 difference = x - y;
  u64 rest = 0;
  for (int j = 0; 64 * j < bits; ++j) rest |= difference.limb[j] & low_mask(bits - 64 * j);
  return rest == 0;
}

// Bytes of arrays of words, for generators and channels.
template <class W>
MutableBytes bytes_of(std::span<W> words) {
  return {reinterpret_cast<u8*>(words.data()), words.size() * sizeof(W)};
}

}  // namespace privml::spdz2k
