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

namespace privml {

inline constexpr i64 kAgreementBytes = 2 * sizeof(lattice::Digest);  // a digest, and a nonce

// Throws ProtocolError where the peer's transcript is another one.
lattice::Digest agree(Party& party, const lattice::Transcript& transcript);

// A message that only what `tag` names can read: the tag stands in front of it. The reader throws
// ProtocolError where it expects another one.
void write_tagged(Party& party, const Block& tag, Bytes message);
void read_tagged(Party& party, const Block& tag, MutableBytes message);

}  // namespace privml
