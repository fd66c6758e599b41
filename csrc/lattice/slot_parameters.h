// SPDX-License-Identifier: Apache-2.0
// Parameter sets of products place by place (slot_product.h).
//
// Assumption  as wide_parameters.h, without images of keys.
// Security    kSlotSets states the levels; scripts/lattice_security.py estimates them anew and a
//             test holds the two together.
// Exactness   as wide_parameters.h, where a factor's coefficients are any numbers below 0.51
//             of the message's prime: log2_failure bounds the probability that a
//             coefficient of the result is wrong, which spoils all places of its ciphertext. So a
//             result is wrong with probability 2^13 times as large at most, below 2^-87.
// Source      wide_parameters.h.
#pragma once

#include "lattice/wide_parameters.h"

namespace privml::lattice {

inline constexpr int kMostSlotPrimes = 2;  // that one product has messages modulo

// The modulus of a ciphertext is a prime of which its message is a residue, times the others.
struct SlotSet {
  RingSet ring;
  std::array<u64, kMostSlotPrimes> messages;
  std::array<u64, 2> others;
  int message_bits() const { return std::bit_width(messages[0]); }
};

// The smallest modulus first; primes are the largest of their bits that are 1 modulo 2 n.
inline constexpr std::array<SlotSet, 2> kSlotSets{
    {{{4096, 87, {164.4, 132.0}}, {137438822401, 137438814209}, {33538049, 33349633}},
     {{8192, 107, {287.4, 254.0}}, {140737488273409, 140737488125953}, {1073692673, 1073643521}}}};

// With messages modulo one of the set's primes.
WideChoice choose_slots(const SlotSet& set, int prime);

}  // namespace privml::lattice
