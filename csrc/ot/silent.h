// SPDX-License-Identifier: Apache-2.0
// Silent OT: random correlated OTs at a tenth of a byte each, from learning parity with noise
// (Yang, Weng, Lan, Zhang, Wang, "Ferret", CCS 2020, eprint 2020/924).
//
// Functionality  Rcot (rcot.h); the offset is the one of the transfers that it starts from.
// Method         An iteration spends correlated OTs on a secret s of lpn.secret places, on the
//                choices of lpn.trees half trees (half_tree.h) and, against malicious parties, on
//                128 masks. The trees give correlations whose choice bits are the noise e, one 1 in
//                each tree at a place that is random because the choices are; the public code
//                (lpn.h) adds A s. Some outputs are kept for the next iteration. The lowest bit of
//                a leaf is cleared and carries the noise, so it carries the choice bit at the end.
// Malicious      Ferret, section 4.2: the receiver draws coefficients once it holds all trees'
//                messages, tells the sender the inner product of coefficients and noise under 128
//                masks, and compares the digests of both sides' inner products with the leaves.
//                Only the receiver checks, so it alone draws the challenge: a sender that sends
//                wrong sums is caught unless it guessed the noise they go with, which the
//                assumption below allows for. A lying receiver gets the digest of a value with the
//                whole entropy of the offset.
// Assumption     learning parity with regular noise for the parameters of lpn.h (malicious: with
//                the answers to guesses at the noise that end the session when wrong); half_tree.h;
//                BLAKE2b as random oracle for the digest.
// Cost           sender to receiver 16 bytes per level of each tree; malicious: 32 bytes from the
//                receiver and 32 back besides.
#pragma once

#include <memory>

#include "base/buffer.h"
#include "crypto/prg.h"
#include "net/channel.h"
#include "ot/lpn.h"
#include "ot/rcot.h"

namespace privml::ot {

// Public, drawn by both parties together: of the trees' permutation and of the code.
struct SilentKeys {
  crypto::Block trees;
  crypto::Block code;
};

struct SilentParameters {
  LpnParameters lpn;
  i64 kept_trees;  // whose leaves the next iteration spends; 0: there is none
  u64 first_matrix;
  bool malicious;

  // Correlations that an iteration spends, and that it gives out.
  constexpr i64 spent() const { return lpn.secret + lpn.choices() + (malicious ? 128 : 0); }
  constexpr i64 usable() const { return (lpn.trees - kept_trees) * lpn.leaves(); }
};

// One iteration of the small set, then any number of the large one.
SilentParameters silent_setup_parameters(bool malicious);
SilentParameters silent_main_parameters(bool malicious);

// `bases`: the first iteration's correlations, at least spent(), with offset `delta`. `prg` makes
// this party's randomness. Steps throw InvalidArgument out of order, after an extension that
// failed, and where nothing was kept; SecurityAbort, once and for all, if the sender cheated.
std::unique_ptr<Rcot> make_silent_sender(net::Channel& channel, const SilentParameters& parameters,
                                         const SilentKeys& keys, crypto::Block delta,
                                         crypto::Prg prg, WipedVector<crypto::Block> bases);
std::unique_ptr<Rcot> make_silent_receiver(net::Channel& channel,
                                           const SilentParameters& parameters,
                                           const SilentKeys& keys, crypto::Prg prg,
                                           WipedVector<crypto::Block> bases);

RcotCost silent_cost(const SilentParameters& parameters);

}  // namespace privml::ot
