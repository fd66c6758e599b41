// SPDX-License-Identifier: Apache-2.0
#include "twopc/product/agreement.h"

#include "base/error.h"

namespace privml::twopc {

lattice::Digest agree(ot::Party& party, const lattice::Transcript& transcript) {
  const lattice::Digest mine = lattice::digest_of(transcript);
  lattice::Digest nonce, theirs, their_nonce;
  party.prg.fill_bytes(nonce);
  party.channel.write(mine);
  party.channel.write(nonce);
  party.channel.read(theirs);
  party.channel.read(their_nonce);
  if (mine != theirs) throw ProtocolError("lattice: the peer computes another product");
  const bool owns = party.rank == transcript.weights_owner;
  return lattice::digest_of(transcript, owns ? nonce : their_nonce, owns ? their_nonce : nonce);
}

}  // namespace privml::twopc
