// SPDX-License-Identifier: Apache-2.0
// A collision-resistant digest of long messages at several bytes per cycle, for Fiat-Shamir
// transcripts of OT extensions.
//
// Method      the message, padded with zeros to whole kilobytes, is dealt word by word to eight
//             lanes; each lane is hashed by BLAKE2b-256 (RFC 7693), all in step in the lanes of
//             vector registers; the digest is BLAKE2b-256 of the length and the eight lane digests.
// Assumption  that of BLAKE2b: lanes and length determine the message, so a collision here is one
//             there.
#pragma once

#include <array>

#include "base/types.h"

namespace privml {

using LaneDigest = std::array<u8, 32>;

LaneDigest lane_digest(Bytes message);

}  // namespace privml
