// SPDX-License-Identifier: Apache-2.0
// Products of weights that one party knows with ring elements that the other party knows, by
// lattice-based encryption (lattice/columns.h).
//
// Functionality  the owner holds weights (outputs x inner, small and signed), the client a message
//                (inner x columns in Z_{2^ell}). They get additive shares of weights * message mod
//                2^ell, exact.
// Method         the client encrypts its rows under a fresh key, whose public half both parties'
//                nonces decide; the owner answers with masked, re-randomised sums; the noise in the
//                low bits is dropped by truncate_reduce, exactly.
// Leakage        none beyond shape, formats and label. Assumption: ring learning with errors
//                (lattice/parameters.h), random oracles (lattice/transcript.h), correlated OT,
//                correlation-robust hash. A result is wrong with probability below 2^-100 for each
//                of its values (Noise::tail), or never (Noise::proved).
// Cost           64 bytes of digest and nonce both ways; a tag, the key and the used
//                coefficients of a ciphertext per row of the message up; an answer for each output
//                down; truncate_reduce of outputs * columns numbers of ell + d bits by d. Depth 3,
//                and truncate_reduce's.
// Source         lattice/columns.h. With a message known ahead: Mishra et al., Delphi (USENIX
//                Security 2020); Liu et al., MiniONN (CCS 2017).
#pragma once

#include "base/buffer.h"
#include "lattice/columns.h"
#include "ot/cost.h"
#include "ot/party.h"

namespace privml {

// What both parties know of a product; columns <= choice.set.n. `label` names what it is for.
struct CiphertextProduct {
  int owner = 0;  // of the weights
  lattice::ColumnChoice choice;
  lattice::ProductShape shape;
  u64 largest = 0;  // weight, in absolute value
  Bytes label = {};
};

// `weights` are empty at the client, `message` at the owner. out: outputs x columns. Throws
// ProtocolError where the peer's product, messages or flight are not this one's.
void ciphertext_product(Party& party, const CiphertextProduct& product,
                        std::span<const u64> weights, std::span<const u64> message,
                        std::span<u64> out);
void cost_ciphertext_product(CostMeter& meter, const CiphertextProduct& product);

// Bytes up and down, without those that truncate_reduce takes.
std::array<i64, 2> ciphertext_bytes(const CiphertextProduct& product);

}  // namespace privml
