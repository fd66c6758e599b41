// SPDX-License-Identifier: Apache-2.0
// FOR TESTS AND MEASUREMENTS ONLY: INSECURE. Both parties derive every correlation and the whole
// MAC key from one seed that both know. No byte is exchanged.
#pragma once

#include <memory>

#include "crypto/block.h"
#include "spdz2k/preprocessing/supply.h"

namespace privml::spdz2k {

// The part of the MAC key, below 2^s, that goes with the ideal supply of `seed`.
template <class R>
typename R::Word ideal_key(crypto::Block seed, int rank);

// Both parties pass the same seed and their own rank.
template <class R>
std::unique_ptr<Supply<R>> make_ideal_supply(crypto::Block seed, int rank);

}  // namespace privml::spdz2k
