// SPDX-License-Identifier: Apache-2.0
// The rings of the actively secure engine. Values live in Z_{2^k}, shares and MACs in Z_{2^(k+s)},
// held in one machine word; the MAC key is alpha = alpha^0 + alpha^1 with alpha^j < 2^s of party j.
//
// Shares     x = x^0 + x^1 and alpha * x = m^0 + m^1, both mod 2^(k+s). Only x mod 2^k is the
//            value: the upper s bits are what computation has left there, and no output shows them.
// Bits       [.]_2 is one s-bit word each for share and MAC under the same key: the value is bit 0,
//            the MAC relation holds mod 2^s, so s - 1 bits of the key protect it. Exclusive or is
//            addition. An arithmetic share becomes a shared bit (its lowest) by dropping the upper
//            bits of share and MAC.
// Shifts     a shared bit times 2^(k-1) is an arithmetic share of bit * 2^(k-1) whose MAC relation
//            holds mod 2^(k+s-1) only: with one key bit less than the rest.
// Security   a wrong opening passes a check with probability 2^-sigma, sigma = s - 1 - log2(s): 57
//            for k = 64 and 26 for k = 32.
// Source     Cramer, Damgard, Escudero, Scholl, Xing, "SPDZ2k" (Crypto 2018); Damgard et al., "New
//            primitives for actively-secure MPC over rings" (S&P 2019), section III.
#pragma once

#include "base/types.h"

namespace privml::spdz2k {

struct Ring32 {
  using Word = u64;
  using BitWord = u32;
  static constexpr int k = 32, s = 32;
};

struct Ring64 {
  using Word = u128;
  using BitWord = u64;
  static constexpr int k = 64, s = 64;
};

// For tests that try every value: its checks catch a wrong opening with probability 15/16 only.
struct Ring8 {
  using Word = u16;
  using BitWord = u8;
  static constexpr int k = 8, s = 8;
};

template <class R>
inline constexpr int kSecurityBits = R::s - std::bit_width(unsigned{R::s});

template <class W>
inline constexpr int kWordBits = 8 * static_cast<int>(sizeof(W));

// Words narrower than int are multiplied without the overflow of signed numbers.
template <class W>
constexpr W product(W a, W b) {
  if constexpr (sizeof(W) < sizeof(unsigned)) {
    return static_cast<W>(static_cast<unsigned>(a) * static_cast<unsigned>(b));
  } else {
    return a * b;
  }
}

// The lowest `bits` bits of x, 0 <= bits <= the word's.
template <class W>
constexpr W low_bits(W x, int bits) {
  if (bits == 0) return 0;
  const int unused = kWordBits<W> - bits;
  return static_cast<W>(static_cast<W>(x << unused) >> unused);
}

}  // namespace privml::spdz2k

// One line per ring, for explicit instantiations.
#define PRIVML_SPDZ2K_FOR_EACH_RING(INSTANTIATE) \
  INSTANTIATE(Ring8)                             \
  INSTANTIATE(Ring32)                            \
  INSTANTIATE(Ring64)
