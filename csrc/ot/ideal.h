// SPDX-License-Identifier: Apache-2.0
// FOR TESTS ONLY: INSECURE. Both parties derive every correlation from one seed that both know, so
// each of them could compute the other's secrets. It stands in for random correlated OT where a
// test looks at what is built on top. No byte is exchanged.
#pragma once

#include <memory>

#include "ot/rcot.h"

namespace privml::ot {

// The two parties of one direction pass the same seed and opposite roles.
std::unique_ptr<Rcot> make_ideal_rcot(OtRole role, crypto::Block shared_seed);

RcotCost ideal_cost();

}  // namespace privml::ot
