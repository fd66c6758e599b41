// SPDX-License-Identifier: Apache-2.0
// Sessions on correlations that were made in an earlier session and kept.
//
// Functionality  set-up without base OTs: a fresh common hash key (the coin toss of setup.h), the
//                offset of the earlier session, and pools that are empty and stay so until
//                CotPool::add(). The two parties add the two halves of the same correlations, in
//                the same order, and none of them twice in any session.
// Security       the offset lives as long as the store: a party that learns another's offset learns
//                all of its transfers, so it is kept as carefully as the correlations. Using one
//                offset in many sessions is what one long session does: the hash stays correlation
//                robust for as many inputs q_i and q_i ^ delta as are all distinct, which single
//                use gives, and the advantage adds up over the correlations whatever session draws
//                them. The hash key is drawn afresh in every session all the same: outputs under
//                different keys are independent, so a table computed for one session serves for no
//                other. No extension and no consistency check runs under a kept offset; its bits
//                can therefore not be guessed one by one by provoking aborts in one session after
//                another.
// Cost           64 bytes per party and two exchanges.
#pragma once

#include <memory>

#include "ot/rcot.h"

namespace privml::ot {

// Makes nothing: every step throws InvalidArgument. `delta` is the sender's offset (lowest bit 1),
// not looked at for the receiver.
std::unique_ptr<Rcot> make_stored_rcot(OtRole role, crypto::Block delta);

}  // namespace privml::ot
