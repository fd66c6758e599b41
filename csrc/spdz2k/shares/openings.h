// SPDX-License-Identifier: Apache-2.0
// What the next MAC check needs about every value opened since the last one, grouped by modulus.
//
// For an opening of x mod 2^b that is this party's share x^j and MAC share m^j, mod 2^(b+s). After
// the parties have seen each other's lowest b bits, x~ is their sum, not reduced, and the slot
// holds x^j and m^j - alpha^j * x~.
#pragma once

#include <map>

#include "spdz2k/shares/shares.h"

namespace privml::spdz2k {

// The group of shared bits beside those of 1 .. k bits.
inline constexpr int kBitGroup = 0;

// A check comes by itself before more than these are pending.
inline constexpr i64 kMostPending = i64{1} << 20;

template <class R>
class Openings {
 public:
  Openings() = default;
  ~Openings() { wipe(); }
  Openings(const Openings&) = delete;
  Openings& operator=(const Openings&) = delete;

  // Room for n more openings; valid until the next call.
  WordSpan<R> add(int bits, i64 n);
  BitSpan<R> add_bits(i64 n);

  i64 pending() const;
  const std::map<int, WordShares<R>>& words() const { return words_; }
  const BitShares<R>& bits() const { return bits_; }
  // Numbers of pending openings by group, groups without any left out.
  std::map<int, i64> groups() const;

  // Forgets the openings but keeps the memory.
  void clear();
  // Overwrites all that was ever pending, and forgets it.
  void wipe();

 private:
  std::map<int, WordShares<R>> words_;
  BitShares<R> bits_;
};

}  // namespace privml::spdz2k
