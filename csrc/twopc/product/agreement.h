// SPDX-License-Identifier: Apache-2.0
// What both parties of a lattice-based protocol agree on before ciphertexts are sent.
//
// Functionality  a digest of the transcript and of a nonce of each party, from which public random
//                numbers come (lattice/transcript.h); parties of different transcripts end.
// Leakage        none: everything is public.
// Cost           kAgreementBytes from each party, at once.
#pragma once

#include "lattice/transcript.h"
#include "ot/party.h"

namespace privml::twopc {

inline constexpr i64 kAgreementBytes = 2 * sizeof(lattice::Digest);  // a digest, and a nonce

// Throws ProtocolError if the peer's transcript is another one.
lattice::Digest agree(ot::Party& party, const lattice::Transcript& transcript);

}  // namespace privml::twopc
